// What is mounted where, and how a mount is taken away; for weirfs and weir-dev.
//
// Errors: kBusy, kPermission and so on from the system, naming the mountpoint.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/result.h"

namespace weir::cli {

enum class MountState {
  kNone,   // not a mountpoint
  kAlive,  // something is mounted there
  kStale,  // a FUSE mount whose daemon is gone: ENOTCONN
};

// Absolute, without "." and "..", symbolic links resolved as far as the path exists and can be
// looked at: a stale mount cannot.
std::string AbsolutePath(const std::string& path);
MountState StateOfMount(const std::string& absolute_path);
// What lies on top there is a WeirFS, as the mount table says; nobody is asked.
bool IsWeirfsMount(const std::string& absolute_path);
// What lies on top there is the kernel's wait for whoever mounts at first use.
bool IsAutomount(const std::string& absolute_path);
// The user who made that FUSE mount.
uid_t OwnerOfMount(const std::string& absolute_path);
struct PlaceInWeirfs {
  std::string inside;  // the path from the root of the file system
  bool on_mount;       // it is below a mount of WeirFS on this machine
};
// A path on a mount loses the mountpoint and gets the subtree that is mounted there; any other is
// taken to be one from the root of the file system.
PlaceInWeirfs WhereInWeirfs(const std::string& path);
// Detaches whatever is mounted there at once, busy or not; root, or the owner of a FUSE mount.
Status DetachMount(const std::string& absolute_path);

}  // namespace weir::cli
