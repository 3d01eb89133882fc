// Callers: who asks, with groups and capabilities. The kernel tells uid, gid and thread; the rest
// comes from /proc, which is slow, and is remembered for a second, or until it proves too little.
// Root needs none. Of everybody, root too, the thread group is known: flows are counted by it.
// Threads: any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/base/time.h"

namespace weir::wire {
class Caller;
}

namespace weir::client {

struct CallerId {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};

// So many ids from that one on.
struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
  bool operator==(const IdRange&) const = default;
};

// What a process may beyond its uid and gid.
struct CallerRights {
  bool known = true;  // false: it could not be seen, and the rest says nothing
  std::vector<gid_t> groups;
  uint64_t capabilities = 0;  // effective ones that decide about files
  std::vector<IdRange> uids;  // what its user namespace maps; none: everybody
  std::vector<IdRange> gids;
  bool operator==(const CallerRights&) const = default;

  // Over files of anybody.
  [[nodiscard]] bool Can(int capability) const {
    return uids.empty() && gids.empty() && (capabilities >> capability & 1) != 0;
  }
};

void ToWire(const CallerRights& rights, wire::Caller* caller);

class Callers {
 public:
  using Read = std::function<CallerRights(const CallerId&)>;
  // 0: it cannot be known.
  using ReadGroup = std::function<pid_t(pid_t thread)>;
  Callers(Clock& clock, Read read, ReadGroup read_group = nullptr)
      : clock_(clock), read_(std::move(read)), read_group_(std::move(read_group)) {}
  [[nodiscard]] CallerRights Of(const CallerId& caller);
  // As it is now; root's too.
  [[nodiscard]] CallerRights Anew(const CallerId& caller);
  // By whose number this mount names the openers of a user; 0: it cannot be known.
  [[nodiscard]] uint64_t ThreadGroupOf(pid_t thread);

 private:
  struct Entry {
    uid_t uid;
    gid_t gid;
    TimePoint read_at;
    CallerRights rights;
  };
  struct Group {
    pid_t number;
    TimePoint read_at;
  };
  Clock& clock_;
  const Read read_;
  const ReadGroup read_group_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Entry> entries_;
  std::unordered_map<pid_t, Group> groups_;
};

}  // namespace weir::client
