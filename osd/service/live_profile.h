// MeasureReads: what the disk of a running OSD sustains, measured by reading it.
//
// The profile of mkfs writes, which only an empty disk allows (ProfileDevice). A disk in use is
// read instead: aligned reads of 512, 64 and 4 KiB, spread over the device at a fixed depth, beside
// whatever load there is. The proposal is the 5th percentile of the windows (AQuA §5.3, §3.4 of
// our algorithms), rounded down to whole MiB/s. What it is worth: under load it says what was left,
// which errs to the safe side; where writes are slower than reads (most flash) it is optimistic,
// and so it is on an image file or a thin disk of which little was ever written.
//
// Units: bytes per second. Threads: any; waits for the result. Errors: those of the device.
#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/base/time.h"
#include "osd/service/object_service.h"

namespace weir {
class BlockDevice;
}

namespace weir::osd {

struct ReadProfileOptions {
  Duration duration = std::chrono::seconds(2);
  Duration window = std::chrono::milliseconds(100);
  int depth = 16;
  uint64_t seed = 1;
};

// `device` and `clock` (which must advance by itself) outlive the call. Reads in flight are waited
// for, also on error.
Result<DiskProfile> MeasureReads(BlockDevice& device, Clock& clock,
                                 const ReadProfileOptions& options);

}  // namespace weir::osd
