// KernelNames: which names the kernel of a shared mount may remember, and of which directories.
//
// It may remember a name in a directory as long as the lease on that directory is believed
// (file_leases.h), which is a second or so at a time; then it asks again. By the owner that came
// with a name it judges who may chmod and who may remove from a sticky directory: the MDS asks the
// lease back before a file with a name there gets another owner. Names that the kernel may still
// have are remembered here, for it to be told of each when the lease goes.
//
// An answer to the kernel counts as arrived kArrival after it was given: until then the thread that
// asked may not have noted it, and what it is told would be undone.
//
// Memory:  the names of some seconds. Threads: any.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/vfs/file_leases.h"
#include "client/vfs/inode_table.h"
#include "common/base/time.h"

namespace weir::client {

class KernelNames {
 public:
  static constexpr Duration kArrival = std::chrono::milliseconds(100);

  KernelNames(Clock& clock, const FileLeases& leases) : clock_(clock), leases_(leases) {}
  // The kernel can be told of names without losing what hangs below them. Before it nothing is
  // given.
  void Enable() { enabled_ = true; }

  // Taken before the question is asked that Give is the answer to.
  [[nodiscard]] uint64_t Asked(const Inode& directory) const;
  // How long the kernel may remember the name that it is being told.
  Duration Give(const Inode& directory, std::string_view name, uint64_t asked);
  // A rename is on its way: with the name goes what the kernel knows of it. True: that is
  // something, and no lease covers it where it goes.
  bool Moves(InodeId from, const std::string& name, const Inode& to, std::string_view new_name);

  // When the lease on the directory has been revoked: how long until the kernel has what it was
  // given.
  [[nodiscard]] Duration ArrivesIn(InodeId directory) const;
  // Then: what it may still remember, to be told of; until there is nothing.
  std::vector<std::string> Take(InodeId directory);
  // The same without an end: it is to be told of them before the lease goes.
  [[nodiscard]] std::vector<std::string> Known(InodeId directory) const;
  void Tick();  // forgets what the kernel has forgotten

 private:
  struct Directory {
    TimePoint until;
    TimePoint given;
    TimePoint turned;
    std::unordered_set<std::string> names;
    std::unordered_set<std::string> older;  // than `turned`
    std::unordered_set<std::string> taken;
  };
  Directory& NoteLocked(InodeId directory, std::string_view name, Duration keep);

  Clock& clock_;
  const FileLeases& leases_;
  std::atomic<bool> enabled_{false};
  mutable std::mutex mutex_;
  std::unordered_map<InodeId, Directory> directories_;
};

}  // namespace weir::client
