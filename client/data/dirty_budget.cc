#include "client/data/dirty_budget.h"

#include <algorithm>

namespace weir::client {
namespace {
constexpr uint64_t kStart = 4 << 20;
constexpr uint64_t kLeast = 2 << 20;  // two full runs: one on its way, one filling
constexpr uint64_t kLeastLimited = 128 << 10;
}  // namespace

DirtyBudget::DirtyBudget(uint64_t bytes_max)
    : most_(bytes_max / kClassShare),
      start_(std::min(most_, kStart)),
      least_(std::min(most_, kLeast)) {}

uint64_t DirtyBudget::LimitOf(ClassId class_id) const {
  const auto it = classes_.find(class_id);
  return std::min(it == classes_.end() ? start_ : it->second.limit, CeilingOf(class_id));
}

uint64_t DirtyBudget::LeastOf(ClassId class_id) const {
  return std::min(least_, CeilingOf(class_id));
}

uint64_t DirtyBudget::CeilingOf(ClassId class_id) const {
  const auto it = limits_.find(class_id);
  if (it == limits_.end() || it->second >= most_ / kLimitSeconds) return most_;
  return std::max(it->second * kLimitSeconds, std::min(most_, kLeastLimited));
}

uint64_t DirtyBudget::HeldBy(ClassId class_id) const {
  const auto it = classes_.find(class_id);
  return it == classes_.end() ? 0 : it->second.held;
}

void DirtyBudget::Took(ClassId class_id, uint64_t bytes, TimePoint now) {
  const auto [it, added] = classes_.try_emplace(class_id);
  Class& mine = it->second;
  if (added) mine.limit = start_;
  if (mine.held == 0) {  // idle until now: time in which it had nothing says nothing
    mine.since = now;
    mine.landed = 0;
  }
  mine.held += bytes;
  held_ += bytes;
}

void DirtyBudget::Dropped(ClassId class_id, uint64_t bytes) {
  classes_.at(class_id).held -= bytes;
  held_ -= bytes;
}

void DirtyBudget::Landed(ClassId class_id, uint64_t bytes, TimePoint now) {
  Class& mine = classes_.at(class_id);
  mine.held -= bytes;
  held_ -= bytes;
  mine.landed += bytes;
  const Duration passed = now - mine.since;
  // A window that is not over yet can still show that the class is fast.
  const double seconds = ToSeconds(std::max(passed, kWindow));
  const auto worth = static_cast<uint64_t>(static_cast<double>(mine.landed) / seconds * kSeconds);
  const uint64_t limit = std::clamp(worth, least_, most_);
  if (passed >= kWindow) {
    mine.limit = limit;
    mine.since = now;
    mine.landed = 0;
  } else {
    mine.limit = std::max(mine.limit, limit);
  }
}

}  // namespace weir::client
