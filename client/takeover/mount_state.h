// MountState: what the next process must know to go on with a mount whose process has died: the
// session, the files that are open, what was written but not stored, locks, and changes that were
// asked of the MDS and not answered to the kernel. It is the sum of the records of takeover.proto.
//
// Pure. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/vfs/file_locks.h"
#include "common/base/ids.h"
#include "common/posix/lock_set.h"

namespace weir::client {

namespace takeover {
class Record;
}

// An open file as the kernel names it.
struct OpenedFile {
  uint64_t number = 0;
  InodeId inode;
  uint64_t request = 0;  // the kernel's number of the request that opened it
  int flags = 0;
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;
  int32_t pid = 0;
  std::optional<std::string> exe;     // when it was asked for
  std::optional<std::string> cgroup;  // likewise
  bool fenced = false;                // opened before the last fence
  bool lost = false;                  // what was written through it is gone, and nobody was told
};

struct MountState {
  uint64_t session = 0;  // 0: nobody has served the mount yet
  uint64_t lives = 0;
  uint64_t last_handle = 0;
  uint64_t fenced = 0;
  std::string init;
  uint32_t generation = 0;
  std::map<uint64_t, OpenedFile> handles;
  std::set<uint64_t> unreleased;  // inodes that the MDS may take for open without need
  std::set<uint64_t> dirty;       // inodes
  std::unordered_map<uint64_t, uint64_t> changes;  // the kernel's number -> the request's id
  std::unordered_map<uint64_t, uint64_t> appends;  // the kernel's number -> where it was to go
  struct Locks {
    LockSet ranges;
    LockSet whole;
    LockSet& Of(bool flock) { return flock ? whole : ranges; }
    [[nodiscard]] bool empty() const { return ranges.empty() && whole.empty(); }
  };
  std::map<uint64_t, Locks> locks;  // by inode
  // Through which handle an owner locked: inode, owner, flock -> handle.
  std::map<std::tuple<uint64_t, uint64_t, bool>, uint64_t> lockers;

  // A process goes on: what its predecessor had not stored is lost.
  void BeginLife();
  // False: of a record that this version does not know.
  bool Apply(const takeover::Record& record);
  // Records that add up to this.
  [[nodiscard]] std::vector<std::string> Snapshot() const;
  // Locks held, as they were asked for.
  [[nodiscard]] std::vector<LockAsk> HeldLocks() const;

 private:
  void ApplyLock(const LockAsk& ask);
};

takeover::Record OpenedRecord(const OpenedFile& file);
takeover::Record LockedRecord(const LockAsk& ask);

}  // namespace weir::client
