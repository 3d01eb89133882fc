#include "common/posix/lock_set.h"

#include <algorithm>

namespace weir {
namespace {

bool InTheWay(const FileLock& held, const FileLock& wanted) {
  return (held.write || wanted.write) && held.first <= wanted.last && wanted.first <= held.last;
}

}  // namespace

std::optional<FileLock> LockSet::Conflict(const FileLock& wanted) const {
  std::optional<FileLock> lowest;
  for (const auto& [owner, ranges] : owners_) {
    if (owner == wanted.owner) continue;
    for (const auto& [first, held] : ranges) {
      if (!InTheWay(held, wanted)) continue;
      if (!lowest.has_value() || first < lowest->first) lowest = held;
      break;
    }
  }
  return lowest;
}

std::vector<LockOwner> LockSet::Blockers(const FileLock& wanted) const {
  std::vector<LockOwner> found;
  for (const auto& [owner, ranges] : owners_) {
    const bool blocks =
        owner != wanted.owner && std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
          return InTheWay(range.second, wanted);
        });
    if (blocks) found.push_back(owner);
  }
  return found;
}

void LockSet::Cut(Ranges* ranges, uint64_t first, uint64_t last) {
  auto it = ranges->upper_bound(first);
  if (it != ranges->begin()) --it;
  while (it != ranges->end() && it->second.first <= last) {
    const FileLock held = it->second;
    if (held.last < first) {
      ++it;
      continue;
    }
    it = ranges->erase(it);
    if (held.first < first) {
      FileLock before = held;
      before.last = first - 1;
      ranges->emplace(before.first, before);
    }
    if (held.last > last) {
      FileLock behind = held;
      behind.first = last + 1;
      ranges->emplace(behind.first, behind);
    }
  }
}

void LockSet::Set(const FileLock& lock) {
  Ranges& ranges = owners_[lock.owner];
  Cut(&ranges, lock.first, lock.last);
  FileLock merged = lock;
  auto next = ranges.lower_bound(lock.first);
  if (next != ranges.end() && next->second.write == lock.write && lock.last < FileLock::kLastByte &&
      next->second.first == lock.last + 1) {
    merged.last = next->second.last;
    next = ranges.erase(next);
  }
  if (next != ranges.begin()) {
    const auto previous = std::prev(next);
    if (previous->second.write == lock.write && previous->second.last + 1 == lock.first) {
      merged.first = previous->second.first;
      ranges.erase(previous);
    }
  }
  ranges.emplace(merged.first, merged);
}

void LockSet::Clear(const LockOwner& owner, uint64_t first, uint64_t last) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  Cut(&found->second, first, last);
  if (found->second.empty()) owners_.erase(found);
}

std::vector<FileLock> LockSet::Missing(const FileLock& lock) const {
  return Without(lock, false);
}

std::vector<FileLock> LockSet::Unlocked(const FileLock& lock) const {
  return Without(lock, true);
}

std::vector<FileLock> LockSet::Without(const FileLock& lock, bool whatever_kind) const {
  LockSet rest;
  rest.Set(lock);
  const auto found = owners_.find(lock.owner);
  if (found == owners_.end()) return rest.All();
  for (const auto& [first, held] : found->second) {
    if (whatever_kind || held.write || !lock.write) rest.Clear(lock.owner, held.first, held.last);
  }
  return rest.All();
}

bool LockSet::DropSession(uint64_t session) {
  return std::erase_if(owners_,
                       [session](const auto& entry) { return entry.first.session == session; }) > 0;
}

std::vector<FileLock> LockSet::All() const {
  std::vector<FileLock> all;
  for (const auto& [owner, ranges] : owners_) {
    for (const auto& [first, held] : ranges) all.push_back(held);
  }
  return all;
}

}  // namespace weir
