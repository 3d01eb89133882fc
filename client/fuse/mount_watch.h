// MountWatch: notices that a mount is being unmounted before the kernel writes back what it still
// holds. umount(2) takes the mount out of the mount table first, then the kernel sends its dirty
// pages, and FUSE_DESTROY comes only after them.
//
// A mount that was handed on to another mount namespace and lives there alone counts as ended, and
// so does one that was detached lazily while files are open.
//
// Threads: any.
#pragma once

#include <mutex>
#include <string>

namespace weir::client {

class MountWatch {
 public:
  // `device` as of DeviceOfMount; it is mounted now.
  explicit MountWatch(std::string device);
  ~MountWatch();
  MountWatch(const MountWatch&) = delete;
  MountWatch& operator=(const MountWatch&) = delete;

  // Costs a system call while the mount table does not change. Once true, always true.
  [[nodiscard]] bool Ended();

 private:
  const std::string device_;
  const int table_;
  std::mutex mutex_;  // nobody goes on while another one reads what changed
  bool ended_ = false;
};

}  // namespace weir::client
