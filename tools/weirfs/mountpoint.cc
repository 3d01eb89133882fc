#include "tools/weirfs/mountpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "tools/cli/mounts.h"
#include "tools/cli/program.h"

namespace weir::weirfs {
namespace {

// Several may lie on each other. Another file system's dead mount is not ours to take away.
Status TakeAwayDeadMounts(const std::string& absolute, const std::string& path) {
  while (cli::StateOfMount(absolute) == cli::MountState::kStale) {
    if (!cli::IsWeirfsMount(absolute)) {
      return {ErrorCode::kBusy,
              fmt::format("cannot mount on '{0}': the mount of another file system there is dead "
                          "(umount -l {0} first)",
                          path)};
    }
    WEIR_RETURN_IF_ERROR(cli::DetachMount(absolute));
    cli::Say("weirfs", fmt::format("took away the dead mount on '{}'", path));
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> PrepareMountpoint(const std::string& path, bool replace) {
  const std::string absolute = cli::AbsolutePath(path);
  WEIR_RETURN_IF_ERROR(TakeAwayDeadMounts(absolute, path));
  // Below an automount, which is there until somebody comes, is where to mount.
  const bool taken =
      cli::StateOfMount(absolute) == cli::MountState::kAlive && !cli::IsAutomount(absolute);
  if (taken && !(replace && cli::IsWeirfsMount(absolute))) {
    return {ErrorCode::kBusy,
            fmt::format("cannot mount on '{0}': something is mounted there already (umount {0} "
                        "first{1})",
                        path, cli::IsWeirfsMount(absolute) ? ", or --replace it" : "")};
  }
  struct stat info {};
  if (stat(absolute.c_str(), &info) != 0) {
    return Status::FromErrno(errno, fmt::format("cannot mount on '{}'", path));
  }
  if (!S_ISDIR(info.st_mode)) {
    return {ErrorCode::kNotDirectory,
            fmt::format("cannot mount on '{}': it is not a directory", path)};
  }
  return absolute;
}

}  // namespace weir::weirfs
