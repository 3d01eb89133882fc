// MountFlags: by which rule reads move access times now: that of the mount in the kernel's table,
// which mount(8) may change at any time (remount), also to read-only. A change holds for the next
// read that is asked for after it.
//
// The kernel does not say through which mount a request came: where the filesystem is mounted in
// several places (bind mounts, other namespaces), the place where this process mounted it decides
// for all.
// Threads: any.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "client/vfs/access_times.h"

namespace weir::client {

class MountFlags {
 public:
  // `wanted`: holds until the mount is known.
  MountFlags(std::string mountpoint, AccessTimes::Rules wanted);
  ~MountFlags();
  MountFlags(const MountFlags&) = delete;
  MountFlags& operator=(const MountFlags&) = delete;

  // It is mounted now, as that device ("0:57"). Not `told`: the kernel does not know what is
  // wanted, which then holds until the table says something new.
  void Mounted(const std::string& device, bool told);
  // Costs a system call, as long as nobody mounts anything.
  [[nodiscard]] AccessTimes::Rules Now();

  // What a table in the format of /proc/self/mountinfo says of the topmost mount of the device
  // there, or else elsewhere; none: it is not mounted.
  static std::optional<AccessTimes::Rules> Find(std::string_view table, std::string_view device,
                                                std::string_view mountpoint);

 private:
  [[nodiscard]] bool HasChanged() const;
  [[nodiscard]] std::optional<AccessTimes::Rules> Read() const;

  const std::string mountpoint_;
  const int table_;  // /proc/self/mountinfo; -1: cannot be read
  std::mutex mutex_;
  std::string device_;
  AccessTimes::Rules rules_;
  AccessTimes::Rules in_table_;  // when they were last looked up
};

// Tells the kernel, so that everybody sees them in its table. False: this process may not.
bool SetAtimeFlags(const std::string& mountpoint, bool noatime, bool nodiratime, bool strictatime);

}  // namespace weir::client
