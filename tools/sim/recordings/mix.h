// What many workloads share: classes of every kind, and requests of each.
#pragma once

#include <string_view>

#include "tools/sim/recordings/workload.h"
#include "tools/sim/workloads/shapes.h"

namespace weir::sim {

inline constexpr ClassId kPromisedClass{16}, kPlainClass{17}, kLimitedClass{18}, kReaderClass{19},
    kBurstyClass{20};
inline constexpr uint64_t kMixRate = 24 * kMiB;  // what the device of a mix moves, and its G0

// That profile at kMixRate. Depth 4, unless the profile is one of those that find their own.
SchedulerConfig MixConfig(std::string_view profile);
// Reads (by that chance) and writes of [least, most] bytes, aligned; each class in a GiB of its
// own.
Shape MixShape(ClassId id, uint64_t least, uint64_t most, double reads, double locality);
// One class of each kind, on all OSDs: a promise, only a weight, a limit, a latency bound, bursts;
// under profile `vd` virtual disks.
void SetMixClasses(Cluster* cluster, bool virtual_disks = false);
// Their requests, best effort's and a background class's, on that OSD through that coordinator.
void StartMix(Cluster* cluster, size_t osd = 0, size_t coordinator = 0);

}  // namespace weir::sim
