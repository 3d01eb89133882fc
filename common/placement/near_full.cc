#include "common/placement/near_full.h"

#include <algorithm>
#include <set>

#include "common/placement/cluster_map.h"

namespace weir {
namespace {
constexpr uint64_t kNearFullMost = uint64_t{256} << 20;
constexpr uint64_t kNearFullPart = 8;
}  // namespace

uint64_t NearFullBelow(uint64_t capacity_bytes) {
  return std::min(capacity_bytes / kNearFullPart, kNearFullMost);
}

bool IsNearFull(uint64_t capacity_bytes, uint64_t used_bytes, bool was) {
  if (capacity_bytes == 0) return false;
  const uint64_t free = capacity_bytes - std::min(capacity_bytes, used_bytes);
  const uint64_t below = NearFullBelow(capacity_bytes);
  return was ? free <= below + below / 2 : free < below;
}

std::vector<OsdId> NearFullOsds(const ClusterMap& map,
                                const std::map<OsdId, uint64_t>& used_bytes) {
  std::set<OsdId> takes_data;
  for (const auto& [id, pool] : map.pools) {
    if (!pool.chains.empty()) takes_data.insert(pool.osds.begin(), pool.osds.end());
  }
  std::vector<OsdId> near_full;
  for (const auto& [id, osd] : map.osds) {
    if (!osd.up || !takes_data.contains(id)) continue;
    const auto later = used_bytes.find(id);
    const uint64_t used = later == used_bytes.end() ? osd.used_bytes : later->second;
    if (IsNearFull(osd.capacity_bytes, used, map.near_full)) near_full.push_back(id);
  }
  return near_full;
}

}  // namespace weir
