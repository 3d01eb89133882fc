// Fences: sessions whose leases go to others while they cannot be heard.
#include <algorithm>

#include "mds/cluster/cluster_keeper.h"

namespace weir::mds {
namespace {
// Whoever comes back later than so many evictions has lost his connections long ago.
constexpr size_t kFencesMax = 1024;
}  // namespace

Result<Epoch> ClusterKeeper::Fence(const std::vector<uint64_t>& sessions) {
  const std::lock_guard changing(changing_);
  ClusterMap next = *map();
  const Epoch epoch(next.epoch.value + 1);  // as Commit gives it
  for (const uint64_t session : sessions) next.fences[session] = epoch;
  while (next.fences.size() > std::max(kFencesMax, sessions.size())) {
    next.fences.erase(
        std::min_element(next.fences.begin(), next.fences.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  WEIR_RETURN_IF_ERROR(CommitSame(std::move(next)));
  return epoch;
}

bool ClusterKeeper::IsFenced(uint64_t session, uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  const auto fence = map_->fences.find(session);
  return fence != map_->fences.end() && Epoch(epoch) < fence->second;
}

bool ClusterKeeper::Fenced(Epoch epoch) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(map_->osds.begin(), map_->osds.end(), [&](const auto& entry) {
    if (!entry.second.up) return true;
    const auto heard = heard_.find(entry.first);
    return heard != heard_.end() && heard->second.fence_epoch >= epoch;
  });
}

}  // namespace weir::mds
