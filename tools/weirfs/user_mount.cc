#include "tools/weirfs/user_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/base/files.h"

namespace weir::weirfs {
namespace {

constexpr std::string_view kWord = "user_allow_other";
constexpr std::string_view kBlank = " \t\r";

bool MayMountAlone() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  return (sets[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

Status CheckDevice(const std::string& device) {
  if (::access(device.c_str(), R_OK | W_OK) == 0) return Status::Ok();
  if (errno == ENOENT) {
    return {ErrorCode::kNotFound,
            fmt::format("cannot mount: there is no {} (as root: modprobe fuse)", device)};
  }
  return {ErrorCode::kPermission,
          fmt::format("cannot mount: {0} is not open to ordinary users (as root: chmod 666 {0})",
                      device)};
}

}  // namespace

int64_t AllowsOthers(std::string_view fuse_conf) {
  int64_t behind_hash = 0;
  int64_t number = 0;
  while (!fuse_conf.empty()) {
    ++number;
    const size_t end = fuse_conf.find('\n');
    std::string_view line = Trimmed(fuse_conf.substr(0, end));
    fuse_conf = end == std::string_view::npos ? std::string_view() : fuse_conf.substr(end + 1);
    if (line == kWord) return number;
    if (line.starts_with('#') && Trimmed(line.substr(1)) == kWord) behind_hash = -number;
  }
  return behind_hash;
}

Status CheckMountHelper(const std::string& helper) {
  struct stat info {};
  if (::stat(helper.c_str(), &info) != 0) {
    return {ErrorCode::kNotFound,
            fmt::format("cannot mount: there is no {} (as root: apt install fuse3)", helper)};
  }
  const bool is_setuid = info.st_uid == 0 && (info.st_mode & S_ISUID) != 0;
  if (is_setuid || ::getxattr(helper.c_str(), "security.capability", nullptr, 0) > 0) {
    return Status::Ok();
  }
  return {ErrorCode::kPermission,
          fmt::format("cannot mount: {0} is not setuid root, so only root may (as root: chown root "
                      "{0}; chmod u+s {0})",
                      helper)};
}

Status CheckUserMount(bool allow_other, const UserMountPaths& paths) {
  if (MayMountAlone()) return Status::Ok();
  WEIR_RETURN_IF_ERROR(CheckDevice(paths.device));
  WEIR_RETURN_IF_ERROR(CheckMountHelper(paths.helper));
  if (!allow_other) return Status::Ok();
  const Result<std::string> conf = ReadFile(paths.conf);
  const int64_t line = conf.ok() ? AllowsOthers(*conf) : 0;
  if (line > 0) return Status::Ok();
  const std::string where =
      line < 0 ? fmt::format("take the '#' out of line {} of {}", -line, paths.conf)
               : fmt::format("add the line '{}' to {}", kWord, paths.conf);
  return {ErrorCode::kPermission,
          fmt::format("cannot mount with -o allow_other: only root may, unless the machine lets "
                      "users (as root: {})",
                      where)};
}

}  // namespace weir::weirfs
