#include "client/vfs/kernel_names.h"

#include <algorithm>
#include <utility>

#include "client/vfs/dir_cache.h"

namespace weir::client {
namespace {

constexpr Duration kTurn = kLeaseTrust + KernelNames::kArrival;

}  // namespace

uint64_t KernelNames::Asked(const Inode& directory) const {
  return enabled_ ? leases_.NamesOf(directory) : 0;
}

Duration KernelNames::Give(const Inode& directory, std::string_view name, uint64_t asked) {
  if (asked == 0) return Duration::zero();
  const std::lock_guard lock(mutex_);
  if (leases_.NamesOf(directory) != asked) return Duration::zero();
  const Duration keep = leases_.Trust();
  NoteLocked(directory.id(), name, keep).given = clock_.Now();
  return keep;
}

bool KernelNames::Moves(InodeId from, const std::string& name, const Inode& to,
                        std::string_view new_name) {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(from);
  if (found == directories_.end() || clock_.Now() >= found->second.until) return false;
  const Directory& left = found->second;
  if (!left.names.contains(name) && !left.older.contains(name) && !left.taken.contains(name)) {
    return false;
  }
  NoteLocked(to.id(), new_name, kLeaseTrust);
  return leases_.NamesOf(to) == 0;
}

KernelNames::Directory& KernelNames::NoteLocked(InodeId directory, std::string_view name,
                                                Duration keep) {
  Directory& known = directories_[directory];
  const TimePoint now = clock_.Now();
  known.until = std::max(known.until, now + keep + kArrival);
  if (now >= known.turned + kTurn) {
    known.older = std::exchange(known.names, {});
    known.turned = now;
  }
  known.names.emplace(name);
  return known;
}

Duration KernelNames::ArrivesIn(InodeId directory) const {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return Duration::zero();
  return std::max(found->second.given + kArrival - clock_.Now(), Duration::zero());
}

// Those that were taken may be moved before the kernel is told of them.
std::vector<std::string> KernelNames::Take(InodeId directory) {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return {};
  Directory& known = found->second;
  known.taken = std::exchange(known.names, {});
  known.taken.merge(known.older);
  if (known.taken.empty() || clock_.Now() >= known.until) {
    directories_.erase(found);
    return {};
  }
  known.older.clear();
  return {known.taken.begin(), known.taken.end()};
}

std::vector<std::string> KernelNames::Known(InodeId directory) const {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return {};
  std::vector<std::string> known(found->second.names.begin(), found->second.names.end());
  known.insert(known.end(), found->second.older.begin(), found->second.older.end());
  return known;
}

void KernelNames::Tick() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  std::erase_if(directories_, [&](const auto& entry) { return entry.second.until <= now; });
}

}  // namespace weir::client
