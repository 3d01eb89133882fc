#include "client/vfs/caller.h"

namespace weir::client {
namespace {
constexpr Duration kValid = std::chrono::seconds(1);
constexpr size_t kMostEntries = 4096;
}  // namespace

std::vector<gid_t> CallerGroups::Of(const CallerId& caller, const Read& read) {
  if (caller.uid == 0) return {};
  const TimePoint now = clock_.Now();
  {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(caller.pid);
    if (it != entries_.end() && it->second.uid == caller.uid && it->second.gid == caller.gid &&
        now - it->second.read_at < kValid) {
      return it->second.groups;
    }
  }
  std::vector<gid_t> groups = read();
  std::lock_guard lock(mutex_);
  if (entries_.size() >= kMostEntries) entries_.clear();
  entries_[caller.pid] = {caller.uid, caller.gid, now, groups};
  return groups;
}

}  // namespace weir::client
