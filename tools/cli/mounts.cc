#include "tools/cli/mounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cli/process.h"
#include "tools/cli/source.h"

namespace weir::cli {
namespace {

// mountinfo writes blanks and the like as \ooo.
std::string Unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct MountEntry {
  std::string type, options;
};

// Of the file system that lies on top there; empty: none.
MountEntry EntryOf(const std::string& path) {
  std::ifstream mounts("/proc/self/mounts");
  MountEntry found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string source, point;
    MountEntry entry;
    fields >> source >> point >> entry.type >> entry.options;
    if (Unescape(point) == path) found = entry;
  }
  return found;
}

}  // namespace

std::string AbsolutePath(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  // Only the parent is resolved: the last part may be a mount that no longer answers.
  const fs::path trimmed = absolute.has_filename() ? absolute : absolute.parent_path();
  const fs::path parent = fs::weakly_canonical(trimmed.parent_path(), error);
  if (error) return trimmed.string();
  const fs::path joined = parent / trimmed.filename();
  const fs::path whole = fs::canonical(joined, error);
  return error ? joined.string() : whole.string();
}

MountState StateOfMount(const std::string& absolute_path) {
  // The kernel may still know the attributes of a root whose daemon is gone.
  struct statx info {};
  const char* const path = absolute_path.c_str();
  const bool gone =
      statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_MODE, &info) != 0 && errno == ENOTCONN;
  if (gone) return MountState::kStale;
  return EntryOf(absolute_path).type.empty() ? MountState::kNone : MountState::kAlive;
}

bool IsWeirfsMount(const std::string& absolute_path) {
  return EntryOf(absolute_path).type == "fuse.weirfs";
}

bool IsAutomount(const std::string& absolute_path) {
  return EntryOf(absolute_path).type == "autofs";
}

uid_t OwnerOfMount(const std::string& absolute_path) {
  constexpr std::string_view kWord = ",user_id=";
  const std::string options = "," + EntryOf(absolute_path).options;
  const size_t at = options.find(kWord);
  if (at == std::string::npos) return 0;
  return static_cast<uid_t>(std::strtoul(options.c_str() + at + kWord.size(), nullptr, 10));
}

PlaceInWeirfs WhereInWeirfs(const std::string& path) {
  const std::string whole = path.empty() ? path : AbsolutePath(path);
  PlaceInWeirfs place{path, false};
  size_t longest = 0;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string source, point, type;
    fields >> source >> point >> type;
    const std::string where = Unescape(point);
    const bool below = whole == where || whole.starts_with(where + "/");
    if (type != "fuse.weirfs" || !below || where.size() < longest) continue;
    longest = where.size();
    const auto mounted = SplitSource(Unescape(source));
    const bool whole_tree = !mounted.ok() || mounted->subtree.empty();
    place.inside = (whole_tree ? "" : "/" + mounted->subtree) + whole.substr(where.size());
    place.on_mount = true;
  }
  return place;
}

Status DetachMount(const std::string& absolute_path) {
  if (umount2(absolute_path.c_str(), MNT_DETACH) == 0) return Status::Ok();
  const int error = errno;
  if (error == EPERM && RunQuietly({"fusermount3", "-u", "-z", absolute_path}) == 0) {
    return Status::Ok();
  }
  return Status::FromErrno(error, fmt::format("cannot unmount '{}'", absolute_path));
}

}  // namespace weir::cli
