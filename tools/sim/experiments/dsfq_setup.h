// What the DSFQ experiments share: the paper's brick, its Postmark-like streams, profiles by name.
#pragma once

#include <string_view>

#include "tools/sim/engine/cluster.h"
#include "tools/sim/experiment.h"

namespace weir::sim {

inline constexpr double kMB = 1e6;
inline constexpr double kBrickRate = 6 * kMB;  // the paper's brick with files of 1 to 16 KB
inline constexpr int kBrickDepth = 20;         // four disks of a RAID-0, five requests each

inline constexpr ClassId kF{16}, kG{17}, kH{18};

// A row of the profile table with that depth and nothing promised.
SchedulerConfig ProfileOf(std::string_view name, uint32_t depth);

// Class 0 exists but takes no part: its weight is nothing in the papers' sums.
void SilenceBestEffort(Cluster* cluster);

// Sizes uniform in [low, high] KiB, addresses anywhere: a Postmark transaction.
std::function<void(Prng&, uint64_t, Io*)> FilesOf(uint64_t low_kib, uint64_t high_kib);

}  // namespace weir::sim
