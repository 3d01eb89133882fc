#include "mds/locks/lock_table.h"

#include <set>

namespace weir::mds {

LockVerdict LockTable::Set(const LockWish& wish, Told* told) {
  File& file = files_[wish.inode];
  LockSet& held = file.Of(wish.flock);
  if (!held.Conflict(wish.lock).has_value()) {
    const bool may_free = !wish.lock.write && held.Holds(wish.lock.owner);
    held.Set(wish.lock);
    if (may_free) ServeQueue(wish.inode, told);
    return LockVerdict::kGranted;
  }
  if (!wish.wait) return LockVerdict::kBusy;
  if (!wish.flock && ClosesCircle(wish)) return LockVerdict::kDeadlock;
  const Ticket ticket{wish.lock.owner.session, wish.ticket};
  if (!waiters_.emplace(ticket, Waiter{wish, LockVerdict::kWaiting, {}}).second) {
    return LockVerdict::kWaiting;  // asked again
  }
  file.queue.push_back(ticket);
  if (!wish.flock) waits_of_.emplace(wish.lock.owner, ticket);
  return LockVerdict::kWaiting;
}

void LockTable::Clear(const LockWish& wish, Told* told) {
  const auto found = files_.find(wish.inode);
  if (found == files_.end()) return;
  found->second.Of(wish.flock).Clear(wish.lock.owner, wish.lock.first, wish.lock.last);
  ServeQueue(wish.inode, told);
  ForgetIfEmpty(wish.inode);
}

std::vector<FileLock> LockTable::Missing(const LockWish& told) const {
  const auto file = files_.find(told.inode);
  if (file == files_.end()) return {told.lock};
  return file->second.Of(told.flock).Missing(told.lock);
}

std::optional<FileLock> LockTable::Conflict(const LockWish& wish) const {
  const auto found = files_.find(wish.inode);
  if (found == files_.end()) return std::nullopt;
  return found->second.Of(wish.flock).Conflict(wish.lock);
}

void LockTable::Await(uint64_t session, uint64_t ticket, Tell tell, Told* told) {
  const auto found = waiters_.find({session, ticket});
  if (found == waiters_.end()) {
    told->emplace_back(std::move(tell), LockVerdict::kUnknown);
  } else if (found->second.outcome == LockVerdict::kWaiting) {
    found->second.asking.push_back(std::move(tell));
  } else {
    told->emplace_back(std::move(tell), found->second.outcome);
    waiters_.erase(found);
  }
}

// The outcome stays for whoever asks for it later, unless somebody does already.
void LockTable::Settle(const Ticket& ticket, LockVerdict outcome, Told* told) {
  const auto found = waiters_.find(ticket);
  Waiter& waiter = found->second;
  const auto [begin, end] = waits_of_.equal_range(waiter.wish.lock.owner);
  for (auto it = begin; it != end; ++it) {
    if (it->second != ticket) continue;
    waits_of_.erase(it);
    break;
  }
  waiter.outcome = outcome;
  for (Tell& tell : waiter.asking) told->emplace_back(std::move(tell), outcome);
  if (!waiter.asking.empty()) waiters_.erase(found);
}

void LockTable::ServeQueue(uint64_t inode, Told* told) {
  File& file = files_[inode];
  for (auto it = file.queue.begin(); it != file.queue.end();) {
    const Ticket ticket = *it;
    const LockWish wish = waiters_.at(ticket).wish;
    LockSet& held = file.Of(wish.flock);
    const bool free = !held.Conflict(wish.lock).has_value();
    // Who got the lock instead may close a circle as well.
    if (!free && (wish.flock || !ClosesCircle(wish))) {
      ++it;
      continue;
    }
    if (free) held.Set(wish.lock);
    it = file.queue.erase(it);
    Settle(ticket, free ? LockVerdict::kGranted : LockVerdict::kDeadlock, told);
  }
}

void LockTable::Cancel(uint64_t session, uint64_t ticket, Told* told) {
  const auto found = waiters_.find({session, ticket});
  if (found == waiters_.end() || found->second.outcome != LockVerdict::kWaiting) return;
  const uint64_t inode = found->second.wish.inode;
  files_[inode].queue.remove(found->first);
  Settle(found->first, LockVerdict::kCancelled, told);
  ForgetIfEmpty(inode);
}

void LockTable::DropSession(uint64_t session, Told* told) {
  for (auto it = waiters_.lower_bound({session, 0});
       it != waiters_.end() && it->first.first == session;) {
    const Ticket ticket = (it++)->first;
    Cancel(session, ticket.second, told);
    waiters_.erase(ticket);
  }
  std::vector<uint64_t> changed;
  for (auto& [inode, file] : files_) {
    const bool had_ranges = file.ranges.DropSession(session);
    if (file.whole.DropSession(session) || had_ranges) changed.push_back(inode);
  }
  for (const uint64_t inode : changed) {
    ServeQueue(inode, told);
    ForgetIfEmpty(inode);
  }
}

void LockTable::ForgetIfEmpty(uint64_t inode) {
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  const File& file = found->second;
  if (file.ranges.empty() && file.whole.empty() && file.queue.empty()) files_.erase(found);
}

bool LockTable::ClosesCircle(const LockWish& wish) const {
  std::set<LockOwner> seen;
  std::vector<LockOwner> next = files_.at(wish.inode).ranges.Blockers(wish.lock);
  while (!next.empty()) {
    const LockOwner owner = next.back();
    next.pop_back();
    if (owner == wish.lock.owner) return true;
    if (!seen.insert(owner).second) continue;
    const auto [begin, end] = waits_of_.equal_range(owner);
    for (auto it = begin; it != end; ++it) {
      const LockWish& his = waiters_.at(it->second).wish;
      for (const LockOwner& blocker : files_.at(his.inode).ranges.Blockers(his.lock)) {
        next.push_back(blocker);
      }
    }
  }
  return false;
}

}  // namespace weir::mds
