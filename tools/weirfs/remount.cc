#include "tools/weirfs/remount.h"

#include <fmt/format.h>
#include <mntent.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>

#include "tools/cli/mounts.h"

namespace weir::weirfs {
namespace {

struct FlagChange {
  unsigned long set = 0, cleared = 0;
};
const std::map<std::string_view, FlagChange> kFlagChanges = {
    {"nosuid", {MS_NOSUID, 0}},    {"suid", {0, MS_NOSUID}},     {"nodev", {MS_NODEV, 0}},
    {"dev", {0, MS_NODEV}},        {"noexec", {MS_NOEXEC, 0}},   {"exec", {0, MS_NOEXEC}},
    {"sync", {MS_SYNCHRONOUS, 0}}, {"dirsync", {MS_DIRSYNC, 0}},
};

// Those of kFlagChanges that the mount on top there has: mount(8) does not say them again, and a
// remount takes away what is not said.
unsigned long FlagsThere(const std::string& absolute) {
  unsigned long flags = 0;
  const auto table =
      std::unique_ptr<FILE, int (*)(FILE*)>(setmntent("/proc/self/mounts", "r"), endmntent);
  if (table == nullptr) return flags;
  while (const mntent* const entry = getmntent(table.get())) {
    if (absolute != entry->mnt_dir) continue;
    flags = 0;
    for (const auto& [word, change] : kFlagChanges) {
      if (hasmntopt(entry, std::string(word).c_str()) != nullptr) flags |= change.set;
    }
  }
  return flags;
}

unsigned long FlagsOf(const std::string& absolute, const MountOptions& options) {
  unsigned long flags = FlagsThere(absolute) | (options.read_only ? MS_RDONLY : 0);
  for (const std::string& word : options.kernel_flags) {  // the last word holds
    const auto flag = kFlagChanges.find(word);
    if (flag != kFlagChanges.end()) flags = (flags | flag->second.set) & ~flag->second.cleared;
  }
  if (options.nodiratime) flags |= MS_NODIRATIME;
  if (options.noatime) return flags | MS_NOATIME;
  return flags | (options.strictatime ? MS_STRICTATIME : MS_RELATIME);
}

}  // namespace

Status Remount(const std::string& mountpoint, const MountOptions& options) {
  const std::string absolute = cli::AbsolutePath(mountpoint);
  if (!cli::IsWeirfsMount(absolute)) {
    return {ErrorCode::kInvalid,
            fmt::format("-o remount: no WeirFS is mounted on '{}' (mount it without)", mountpoint)};
  }
  if (mount(nullptr, absolute.c_str(), nullptr, MS_REMOUNT | FlagsOf(absolute, options), nullptr) ==
      0) {
    return Status::Ok();
  }
  const int error = errno;
  const char* const hint =
      error == EBUSY && options.read_only ? " (files are open for writing there: fuser -vm)" : "";
  const Status status = Status::FromErrno(error, fmt::format("cannot remount '{}'", mountpoint));
  return {status.code(), status.message() + hint};
}

}  // namespace weir::weirfs
