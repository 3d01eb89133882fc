#include "client/vfs/caller.h"

#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {
constexpr Duration kValid = std::chrono::seconds(1);
constexpr size_t kMostEntries = 4096;
}  // namespace

void ToWire(const CallerRights& rights, wire::Caller* caller) {
  caller->set_unknown(!rights.known);
  caller->set_capabilities(rights.capabilities);
  caller->clear_groups();
  caller->clear_uids();
  caller->clear_gids();
  for (const gid_t group : rights.groups) caller->add_groups(group);
  const auto add = [](const IdRange& range, wire::IdRange* out) {
    out->set_first(range.first);
    out->set_count(range.count);
  };
  for (const IdRange& range : rights.uids) add(range, caller->add_uids());
  for (const IdRange& range : rights.gids) add(range, caller->add_gids());
}

CallerRights Callers::Of(const CallerId& caller) {
  if (caller.uid == 0) return {};
  {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(caller.pid);
    if (it != entries_.end() && it->second.uid == caller.uid && it->second.gid == caller.gid &&
        clock_.Now() - it->second.read_at < kValid) {
      return it->second.rights;
    }
  }
  return Anew(caller);
}

CallerRights Callers::Anew(const CallerId& caller) {
  const TimePoint now = clock_.Now();
  CallerRights rights = read_(caller);
  std::lock_guard lock(mutex_);
  if (entries_.size() >= kMostEntries) entries_.clear();
  entries_[caller.pid] = {caller.uid, caller.gid, now, rights};
  return rights;
}

uint64_t Callers::ThreadGroupOf(pid_t thread) {
  if (thread == 0 || read_group_ == nullptr) return 0;
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    const auto known = groups_.find(thread);
    if (known != groups_.end() && now - known->second.read_at < kValid) {
      return static_cast<uint64_t>(known->second.number);
    }
  }
  const pid_t group = read_group_(thread);
  std::lock_guard lock(mutex_);
  if (groups_.size() >= kMostEntries) groups_.clear();
  groups_[thread] = {group, now};
  return static_cast<uint64_t>(group);
}

}  // namespace weir::client
