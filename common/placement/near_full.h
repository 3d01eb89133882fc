// Which OSDs are nearly full. Pure.
//
// While the map says near_full, mounts store before they answer close(2): who fills the disks hears
// of it from the call that did, though others are answered before their bytes are on an OSD.
//
// The MDS judges (mds/cluster); `osdctl status` names the OSDs by the same rule.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/base/ids.h"

namespace weir {

struct ClusterMap;

// Of that capacity at least this is to be free: an eighth, 256 MiB at most.
[[nodiscard]] uint64_t NearFullBelow(uint64_t capacity_bytes);
// `was`: so far. What was nearly full is so until half as much again is free, as each turn is a new
// epoch of the map. One without capacity is not.
[[nodiscard]] bool IsNearFull(uint64_t capacity_bytes, uint64_t used_bytes, bool was);

// The OSDs for which map.near_full should be set: up, in a pool that has chains, and nearly full,
// where map.near_full says whether it was so. `used_bytes`: what is known later than the map.
[[nodiscard]] std::vector<OsdId> NearFullOsds(const ClusterMap& map,
                                              const std::map<OsdId, uint64_t>& used_bytes = {});

}  // namespace weir
