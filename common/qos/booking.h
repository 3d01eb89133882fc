// Booking: what the contracts of a class take of one OSD, all in one currency, bytes per second of
// its token rate G0, so that promises of every kind fit into one ledger (osd/qos/RULES.md C9).
//
//   bandwidth R        R, or min(R, f R / n) of a total over n OSDs, with its leeway f (1.5)
//   requests N/s       N units of G0 / IOPSmax, divided in the same way
//   latency bound      the requests per second it needs by (10), in those units
//   virtual disk       its share of the disk, f G0, or its peak in bytes per second
//
// A class with several of them books the largest: a request counts against each
// (osd/qos/guarantee). Example: G0 = 60 MiB/s, IOPSmax 960 (units of 64 KiB), one OSD: 20 ms with
// 16 pending needs 17 / (20 ms - 1/960 s) = 896.8/s, which books 56 MiB/s. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/qos/qos_config.h"
#include "common/qos/service_contract.h"

namespace weir {

struct Booking {
  static constexpr uint64_t kImpossible = uint64_t{1} << 53;  // no OSD is that fast

  uint64_t promise = 0;
  uint64_t bound = 0;
  uint64_t disk = 0;
  bool promise_measured = false;  // was weighed with what is measured, not with its worst case
  bool bound_measured = false;

  [[nodiscard]] uint64_t total() const { return std::max({promise, bound, disk}); }
  // What was promised whatever is measured.
  [[nodiscard]] uint64_t worst_case() const {
    return std::max({promise_measured ? 0 : promise, bound_measured ? 0 : bound, disk});
  }
};

// `osds`: how many the class may use.
Booking BookingOf(const ClassSpec& spec, const SchedulerConfig& osd, size_t osds);

// The part of the class's bound that one of `osds` OSDs has to keep.
ServiceContract LocalContract(const ServiceContract& contract, size_t osds);

}  // namespace weir
