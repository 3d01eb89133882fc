// CallerClasses: which class I/O is charged to: the tag's, if one covers the file, else that of
// whoever opened it: by the first rule that matches him, else the mount's, else best-effort.
//
// An Opener is who opened a file: uid, gid, groups, thread group, executable and cgroup as they
// were at OPEN. It is kept in the handle and goes with the data through read-ahead and write-back,
// whose requests come from the kernel's or our own threads. Rules may change at any time: an Opener
// remembers what they said about him until a newer map comes.
//
// The executable is read at OPEN only when some rule asks for one, the cgroup when a rule or the
// flows of a class do. When the first such rule comes later, it is read at the next I/O, if the
// thread that opened still runs under the same uid.
// Threads: any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/remote/object_sender.h"
#include "client/vfs/inode_table.h"
#include "common/placement/cluster_map.h"

namespace weir::client {

class Opener {
 public:
  Opener(uid_t uid, gid_t gid, std::vector<gid_t> groups, pid_t pid, Abandoned fenced = nullptr,
         uint64_t thread_group = 0)
      : uid_(uid),
        gid_(gid),
        groups_(std::move(groups)),
        pid_(pid),
        thread_group_(thread_group),
        fenced_(std::move(fenced)) {}

  // True for ever when the session in which he opened was evicted: nothing may be written in his
  // name any more. Null: never.
  [[nodiscard]] const Abandoned& fenced() const { return fenced_; }
  [[nodiscard]] bool is_fenced() const { return fenced_ != nullptr && *fenced_; }

  [[nodiscard]] uid_t uid() const { return uid_; }
  [[nodiscard]] gid_t gid() const { return gid_; }
  [[nodiscard]] const std::vector<gid_t>& groups() const { return groups_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // When it was asked for.
  [[nodiscard]] std::optional<std::string> exe() const;
  [[nodiscard]] std::optional<std::string> cgroup() const;

 private:
  friend class CallerClasses;
  const uid_t uid_;
  const gid_t gid_;
  const std::vector<gid_t> groups_;
  const pid_t pid_;              // 0: nobody's process
  const uint64_t thread_group_;  // 0: unknown
  const Abandoned fenced_;
  mutable std::mutex mutex_;
  mutable bool exe_known_ = false;
  mutable std::string exe_;
  mutable std::shared_ptr<const std::string> cgroup_;  // null: not read
  // Version of the rules above, class below: what they said about him.
  mutable std::atomic<uint64_t> answer_{0};
};
using OpenerPtr = std::shared_ptr<const Opener>;

class CallerClasses {
 public:
  // The whole path of the program that a process runs, or that of its cgroup; empty: unknown, or
  // another uid's.
  using ReadText = std::function<std::string(pid_t pid, uid_t uid)>;
  struct Mount {
    std::string client;       // its name
    std::string mount_class;  // empty: none
  };
  CallerClasses(Mount mount, ReadText read_exe, ReadText read_cgroup)
      : mount_(std::move(mount)),
        read_exe_(std::move(read_exe)),
        read_cgroup_(std::move(read_cgroup)) {}

  void SetMap(std::shared_ptr<const ClusterMap> map);

  // `thread_group`: as Callers::ThreadGroupOf.
  OpenerPtr Open(uid_t uid, gid_t gid, std::vector<gid_t> groups, pid_t pid,
                 uint64_t thread_group = 0) const;
  // Who opened a file through a predecessor of this process.
  struct Former {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    pid_t pid = 0;
    uint64_t thread_group = 0;
    std::optional<std::string> exe;     // when it was asked for
    std::optional<std::string> cgroup;  // likewise
    bool fenced = false;
  };
  OpenerPtr Restore(const Former& former) const;
  // The session was evicted: with it everybody who has opened something so far.
  void Fence();
  [[nodiscard]] ClassId Of(const Opener& opener) const;
  [[nodiscard]] ClassId Of(const Inode& inode, const Opener& opener) const;

  // Whose a request of his is, within that class, by the kind of flows that it has now.
  [[nodiscard]] Flow FlowOf(ClassId id, const Opener& opener) const;

  // Whether what the class's files may hold is bounded.
  [[nodiscard]] bool HasCapacity(ClassId id) const;

  // What rules and flows ask of a caller beyond his ids; empty: none does, or it is not known.
  struct Program {
    std::string exe;
    std::string cgroup;
  };
  [[nodiscard]] Program ProgramOf(uid_t uid, pid_t pid) const;
  // Of somebody who opens nothing.
  [[nodiscard]] ClassId OfCaller(uid_t uid, gid_t gid, const std::vector<gid_t>& groups,
                                 const Program& program) const;

 private:
  std::string ExeOf(const Opener& opener) const;
  std::shared_ptr<const std::string> CgroupOf(const Opener& opener) const;

  const Mount mount_;
  const ReadText read_exe_;
  const ReadText read_cgroup_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ClusterMap> map_;  // under mutex_
  std::shared_ptr<std::atomic<bool>> fenced_ = std::make_shared<std::atomic<bool>>(false);  // too
  std::atomic<uint32_t> version_{0};       // of map_; 0: none yet
  std::atomic<bool> asks_exe_{false};      // some rule does
  std::atomic<bool> asks_cgroup_{false};   // likewise
  std::atomic<bool> cgroup_flows_{false};  // some class has them
  std::atomic<bool> other_flows_{false};   // some class has others than those of users
  std::atomic<bool> has_rules_{false};
  std::atomic<bool> has_capacities_{false};
  std::atomic<uint32_t> without_rules_{0};  // the class of whom no rule matches
};

}  // namespace weir::client
