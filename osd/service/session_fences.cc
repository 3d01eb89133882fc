#include "osd/service/session_fences.h"

#include <algorithm>

namespace weir::osd {

Status SessionFences::Begin(uint64_t session, uint64_t epoch) {
  if (awaits_map_) return {ErrorCode::kBusy, "the MDS has not told yet who may write"};
  const auto fence = fences_.find(session);
  if (fence != fences_.end() && Epoch(epoch) < fence->second) {
    return {ErrorCode::kStale, "its sender was silent and what it held was given to others"};
  }
  ++under_way_[session][epoch];
  return {};
}

void SessionFences::End(uint64_t session, uint64_t epoch) {
  const auto found = under_way_.find(session);
  if (found == under_way_.end()) return;
  const auto count = found->second.find(epoch);
  if (count == found->second.end()) return;
  if (--count->second == 0) found->second.erase(count);
  if (found->second.empty()) under_way_.erase(found);
}

void SessionFences::Apply(const std::map<uint64_t, Epoch>& fences, Epoch map_epoch) {
  awaits_map_ = false;
  fences_ = fences;
  map_epoch_ = map_epoch;
}

Epoch SessionFences::Drained() const {
  Epoch drained = map_epoch_;
  for (const auto& [session, fence] : fences_) {
    const auto found = under_way_.find(session);
    if (found == under_way_.end() || Epoch(found->second.begin()->first) >= fence) continue;
    drained = std::min(drained, Epoch(fence.value - 1));
  }
  return drained;
}

}  // namespace weir::osd
