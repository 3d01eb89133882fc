// What an empty OSD's device sustains: the token rate it is given when it is formatted.
//
// Source: AQuA §5.3: the 5th percentile of throughput windows, at a fixed depth.
// Threads: one call at a time per device.
// Errors:  those of the device; kExists when the OSD holds objects, kInvalid when it is none.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/disk/block_device.h"

namespace weir::osd {

struct DeviceProfile {
  uint64_t rate;  // bytes per second, whole MiB, at least one
  bool steady;    // the slow windows are no less than a quarter of the middle one
};

// Of the bytes that each window moved; at least one window.
DeviceProfile ProfileOf(std::vector<uint64_t> windows, Duration window);

// Measures what the device sustains and returns a conservative token rate in bytes per second.
// Writes only into free space of an empty store. A device that looks unsteady is measured up to
// three times, and the best counts: others on the machine can only make it look slower.
Result<uint64_t> ProfileDevice(BlockDevice& device);

}  // namespace weir::osd
