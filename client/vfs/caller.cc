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

}  // namespace weir::client
