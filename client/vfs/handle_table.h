// Handle: one open of a regular file. HandleTable: the numbers the kernel carries for them.
// Threads: any. A handle lives until its last user lets go, also after Remove.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "client/data/read_ahead.h"
#include "client/vfs/caller_classes.h"
#include "client/vfs/inode_table.h"

namespace weir::client {

struct Handle {
  Handle(InodePtr opened, OpenerPtr by, int open_flags);

  const InodePtr inode;
  const OpenerPtr opener;
  const int flags;
  const bool direct;  // opened with O_DIRECT
  ReadAhead::Stream stream;
  // A predecessor of this process had not stored what was written: the next fsync or close tells.
  std::atomic<bool> lost{false};
  std::atomic<uint64_t> errors_told;  // of Inode::TakeError
  std::atomic<bool> locked{false};    // through it, at some time

  [[nodiscard]] bool MayWrite() const { return (flags & O_ACCMODE) != O_RDONLY; }

  // The file is changed through it, by that thread of the mount's machine; 0: not known by whom.
  void Changing(pid_t by);
  // How much was changed, stores into mappings included, which may have been made through it.
  struct Changes {
    uint64_t own = 0;
    uint64_t pages = 0;
    bool operator==(const Changes&) const = default;
  };
  [[nodiscard]] Changes changes() const;
  // All that was changed by then is stored, or whoever asked was told that it is not.
  void Flushed(const Changes& then);
  // What a close by that thread is to do: store what was written, and tell of errors; only tell; or
  // nothing, as what is not stored is of another process that lives and will close it too, and
  // hear. `other_process`: the first lives, and is a thread of another process than the second.
  enum class AtClose : uint8_t { kStore, kTell, kNothing };
  using OtherProcess = std::function<bool(pid_t, pid_t)>;
  [[nodiscard]] AtClose CloseBy(pid_t closer, const OtherProcess& other_process) const;
  // A close tells of errors that came while the file was open through it: whoever has only read
  // hears of none.
  [[nodiscard]] bool HearsAtClose() const { return locked || changes() != before_; }
  [[nodiscard]] bool HasNewErrors() const { return inode->errors(hears()) > errors_before_; }
  // Which errors of the inode concern it.
  [[nodiscard]] Inode::Hears hears() const {
    const bool fenced = opener != nullptr && opener->is_fenced();
    return fenced ? Inode::Hears::kFenced : Inode::Hears::kAll;
  }

 private:
  [[nodiscard]] Changes ChangesLocked() const;

  static constexpr pid_t kNobody = -1, kSeveral = -2;
  mutable std::mutex mutex_;
  uint64_t own_ = 0;
  const Changes before_;
  const uint64_t errors_before_;
  Changes flushed_;
  pid_t changed_by_ = kNobody;  // since the last flush
};
using HandlePtr = std::shared_ptr<Handle>;

class HandleTable {
 public:
  uint64_t Add(HandlePtr handle);
  // Under a number that a predecessor of this process gave out; SetLast: the last of those.
  void Restore(uint64_t number, HandlePtr handle);
  void SetLast(uint64_t last);
  [[nodiscard]] HandlePtr Find(uint64_t number) const;
  HandlePtr Remove(uint64_t number);

 private:
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, HandlePtr> handles_;
};

}  // namespace weir::client
