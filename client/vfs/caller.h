// Callers: who asks, with supplementary groups. The kernel tells uid, gid and thread; the groups
// come from /proc, which is slow, and are remembered for a second. Root needs none. Threads: any.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/base/time.h"

namespace weir::client {

struct CallerId {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};

class CallerGroups {
 public:
  using Read = std::function<std::vector<gid_t>()>;
  explicit CallerGroups(Clock& clock) : clock_(clock) {}
  std::vector<gid_t> Of(const CallerId& caller, const Read& read);

 private:
  struct Entry {
    uid_t uid;
    gid_t gid;
    TimePoint read_at;
    std::vector<gid_t> groups;
  };
  Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Entry> entries_;
};

}  // namespace weir::client
