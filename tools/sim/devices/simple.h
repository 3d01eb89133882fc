// Devices without mechanics.
//
//   Flat(rate)        one server, first come first served: bytes / rate each
//   Slots(n, rate)    n servers of rate / n each, service times exponential about bytes * n / rate:
//                     throughput grows with the requests under way up to n (a small RAID)
//   Exponential(iops) one server, exponential service of mean 1 / iops whatever the size
#pragma once

#include "tools/sim/engine/device.h"

namespace weir::sim {

DeviceFactory Flat(double bytes_per_s);
DeviceFactory Slots(int servers, double bytes_per_s);
DeviceFactory Exponential(double iops);

}  // namespace weir::sim
