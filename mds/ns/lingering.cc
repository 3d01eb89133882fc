#include "mds/ns/lingering.h"

#include <algorithm>

namespace weir::mds {

void Lingering::Note(uint64_t session, uint64_t key) {
  Slot& slot = told_[IndexOf(key)];
  if (slot.session != session) slot.before = slot.last;
  slot.session = session;
  slot.last = clock_.Now();
}

bool Lingering::WasNoted(uint64_t session, uint64_t key) const {
  const Slot& slot = told_[IndexOf(key)];
  const bool by_another = slot.session != session || session == kAnybody;
  return IsLately(by_another ? slot.last : slot.before);
}

std::vector<uint64_t> Lingering::KeepOnly(uint64_t session, const std::vector<uint64_t>& inodes) {
  std::vector<uint64_t> others;
  for (const auto& [inode, keeper] : kept_) {
    if (keeper == session && std::find(inodes.begin(), inodes.end(), inode) == inodes.end()) {
      others.push_back(inode);
    }
  }
  for (const uint64_t inode : others) kept_.erase(inode);
  for (const uint64_t inode : inodes) Keep(session, inode);
  return others;
}

void Lingering::Stay(uint64_t inode) {
  const TimePoint until = clock_.Now() + kGrace;
  staying_[inode] = until;
  due_.emplace_back(until, inode);
}

size_t Lingering::CountUnopened(const std::function<bool(uint64_t)>& is_open) const {
  size_t count = 0;
  for (const auto& [inode, session] : kept_) count += is_open(inode) ? 0 : 1;
  for (const auto& [inode, until] : staying_) {
    count += kept_.contains(inode) || is_open(inode) ? 0 : 1;
  }
  return count;
}

std::vector<uint64_t> Lingering::TakeDue(size_t most) {
  std::vector<uint64_t> due;
  const TimePoint now = clock_.Now();
  while (!due_.empty() && due_.front().first <= now && due.size() < most) {
    const auto [until, inode] = due_.front();
    due_.pop_front();
    const auto found = staying_.find(inode);
    if (found == staying_.end() || found->second > until) continue;
    staying_.erase(found);
    due.push_back(inode);
  }
  return due;
}

}  // namespace weir::mds
