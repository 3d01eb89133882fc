// CallerClasses: which class I/O is charged to: the tag's, if one covers the file, else that of
// whoever opened it: by the first rule that matches him, else the mount's, else best-effort.
//
// An Opener is who opened a file: uid, gid, groups, thread group and executable as they were at
// OPEN. It is kept in the handle and goes with the data through read-ahead and write-back, whose
// requests come from the kernel's or our own threads. Rules may change at any time: an Opener
// remembers what they said about him until a newer map comes.
//
// The executable is read at OPEN only when some rule asks for one. When the first such rule comes
// later, it is read at the next I/O, if the thread that opened still runs under the same uid.
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
  // By which the OSDs tell him from others of his class.
  [[nodiscard]] Flow flow() const { return {uid_, thread_group_}; }
  // When it was asked for.
  [[nodiscard]] std::optional<std::string> exe() const;

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
  // Version of the rules above, class below: what they said about him.
  mutable std::atomic<uint64_t> answer_{0};
};
using OpenerPtr = std::shared_ptr<const Opener>;

class CallerClasses {
 public:
  // The whole path of the program that a process runs; empty: unknown, or another uid's.
  using ReadExe = std::function<std::string(pid_t pid, uid_t uid)>;
  struct Mount {
    std::string client;       // its name
    std::string mount_class;  // empty: none
  };
  CallerClasses(Mount mount, ReadExe read_exe)
      : mount_(std::move(mount)), read_exe_(std::move(read_exe)) {}

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
    std::optional<std::string> exe;  // when it was asked for
    bool fenced = false;
  };
  OpenerPtr Restore(const Former& former) const;
  // The session was evicted: with it everybody who has opened something so far.
  void Fence();
  [[nodiscard]] ClassId Of(const Opener& opener) const;
  [[nodiscard]] ClassId Of(const Inode& inode, const Opener& opener) const;

  // Whether what the class's files may hold is bounded.
  [[nodiscard]] bool HasCapacity(ClassId id) const;

  // Of somebody who opens nothing. `exe` as of ExeOf.
  [[nodiscard]] ClassId OfCaller(uid_t uid, gid_t gid, const std::vector<gid_t>& groups,
                                 const std::string& exe) const;

  // The executable of a caller when a rule asks for one, else nothing.
  [[nodiscard]] std::string ExeOf(uid_t uid, pid_t pid) const;

 private:
  std::string ExeOf(const Opener& opener) const;

  const Mount mount_;
  const ReadExe read_exe_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ClusterMap> map_;  // under mutex_
  std::shared_ptr<std::atomic<bool>> fenced_ = std::make_shared<std::atomic<bool>>(false);  // too
  std::atomic<uint32_t> version_{0};   // of map_; 0: none yet
  std::atomic<bool> asks_exe_{false};  // some rule does
  std::atomic<bool> has_rules_{false};
  std::atomic<bool> has_capacities_{false};
  std::atomic<uint32_t> without_rules_{0};  // the class of whom no rule matches
};

}  // namespace weir::client
