// MeasureDisk: what the disk of a running OSD sustains for an expected workload, measured beside
// whatever load there is, past the pipeline.
//
// Writes go through the store, into a file of nobody that is gone afterwards: checksummed,
// committed and flushed as every write, since that is what the token rate is spent on. Reads go to
// the disk itself, spread over all of it, so that an arm has to travel; on an image file, where a
// place that was never written is no I/O at all, they read the file of nobody instead. At the
// pattern's depth; the proposal is the 5th percentile of the windows (AQuA §5.3, RULES.md
// §3.4), rounded down to whole MiB/s. Under load it says what was left, which errs to the
// safe side. Then small reads, one after the other, show how long one takes alone, 99 times in 100.
// What a crash leaves of the file (64 MiB at most) goes with the next measurement.
//
// Units: bytes per second. Threads: any; waits for the result. Errors: those of disk and store;
// kNoSpace when a pattern that writes finds less than four times the file free.
#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/qos/profile_pattern.h"
#include "osd/service/object_service.h"

namespace weir {
class BlockDevice;
}

namespace weir::osd {

struct DiskProfileOptions {
  ProfilePattern pattern;
  Duration duration = std::chrono::seconds(4);
  Duration window = std::chrono::milliseconds(100);
  uint64_t seed = 1;
  uint64_t file_bytes = 64 << 20;  // a multiple of kMaxObjectSize
};

// `clock` must advance by itself; all outlive the call. What is under way is waited for, also on
// error.
Result<DiskProfile> MeasureDisk(BlockDevice& device, ObjectStore& store, Clock& clock,
                                const DiskProfileOptions& options);

}  // namespace weir::osd
