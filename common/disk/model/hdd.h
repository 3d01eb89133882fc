// A disk with mechanics: t = overhead + seek(d) + rotation + bytes / rate.
//
//   seek(d) = s1 + (full - s1) * d^p, d = distance / full stroke, seek(0) = 0; p such that the mean
//             over uniform pairs is the data sheet's: s1 + (full - s1) * 2 / ((p + 1)(p + 2))
//   rotation  uniform in [0, 60 / rpm) when the head had to move
//   read-ahead: a read that begins where one of the last `segments` streams ended costs overhead +
//             bytes / rate, and `switch_s` more when it is another stream than last time
//   write cache: a write that fits is done after overhead + bytes / bus; the disk writes it back in
//             address order when nobody waits, or when the cache is full, in passes: what lies
//             within one round of the platter goes in one, gaps included. A pass that goes on where
//             one of the last streams ended pays no way there (a real disk would; the read after
//             it pays the way back)
//   flush     done when the cache is empty; meanwhile the cache takes no writes, and reads and
//             write-backs alternate
//   queue     with ncq 1 requests are served as they came. Beyond that the disk picks among the
//             first `ncq` the one that is nearest; one that was passed over 2 * ncq times is next,
//             and writes reach the cache whatever is before them
//
// Source of the models: osd/qos/RULES.md, Models; sata-7200 is a data sheet's typical disk.
#pragma once

#include <string_view>
#include <vector>

#include "common/base/prng.h"
#include "common/disk/model/disk_model.h"
#include "common/disk/model/event_queue.h"

namespace weir::model {

struct HddModel {
  double rpm = 7200;
  double first_seek_s = 1.2e-3;  // s1
  double mean_seek_s = 8.5e-3;
  double full_seek_s = 14.7e-3;
  double bytes_per_s = 37e6;
  double overhead_s = 0.3e-3;
  uint64_t capacity = 75ull << 30;
  bool constant_seek = false;  // every seek costs mean_seek_s (what one of the papers does)
  int segments = 0;            // 0: no read-ahead
  double switch_s = 0;
  uint64_t write_cache = 0;  // bytes; 0: off
  double bus_bytes_per_s = 100e6;
  int ncq = 1;
};

// By name: st32171w and st34501n (with `catalogue`, the data sheet's seeks instead of the paper's),
// dtla-307075, 6y080p0, ultra320-15k, sata-7200. CHECKs that the name exists.
HddModel HddModelOf(std::string_view name, bool catalogue = false);
std::vector<std::string_view> HddModelNames();

// `disks` of one model behind one address space, striped in units of that many bytes. The queue
// outlives them.
std::unique_ptr<DiskModel> MakeHdd(EventQueue* events, const HddModel& model, int disks,
                                   uint64_t stripe_unit, Prng prng);

}  // namespace weir::model
