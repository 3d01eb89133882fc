#include "tools/weirfs/mountpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "tools/cli/mounts.h"

namespace weir::weirfs {

Result<std::string> PrepareMountpoint(const std::string& path) {
  const std::string absolute = cli::AbsolutePath(path);
  switch (cli::StateOfMount(absolute)) {
    case cli::MountState::kAlive:
      return {ErrorCode::kBusy, fmt::format("cannot mount on '{}': something is mounted there "
                                            "already (umount {} first)",
                                            path, path)};
    case cli::MountState::kStale:
      WEIR_RETURN_IF_ERROR(cli::DetachMount(absolute));
      break;
    case cli::MountState::kNone:
      break;
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
