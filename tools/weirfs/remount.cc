#include "tools/weirfs/remount.h"

#include <fmt/format.h>
#include <sys/mount.h>

#include <cerrno>
#include <map>
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

unsigned long FlagsOf(const MountOptions& options) {
  unsigned long flags = options.read_only ? MS_RDONLY : 0;
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
  if (mount(nullptr, absolute.c_str(), nullptr, MS_REMOUNT | FlagsOf(options), nullptr) == 0) {
    return Status::Ok();
  }
  const int error = errno;
  const char* const hint =
      error == EBUSY && options.read_only ? " (files are open for writing there: fuser -vm)" : "";
  const Status status = Status::FromErrno(error, fmt::format("cannot remount '{}'", mountpoint));
  return {status.code(), status.message() + hint};
}

}  // namespace weir::weirfs
