#include "common/base/note_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <regex>

#include "common/base/files.h"

namespace weir {

NoteFile::~NoteFile() {
  if (path_.empty()) return;
  const auto is_ours = [this](const std::string& path) {
    const auto there = ReadFile(path);
    return there.ok() && *there == text_;
  };
  if (!is_ours(path_)) return;
  // Somebody may write it between a look and an unlink: what was moved is looked at again.
  const std::string moved = fmt::format("{}.{}", path_, getpid());
  if (rename(path_.c_str(), moved.c_str()) != 0) return;
  if (!is_ours(moved)) (void)link(moved.c_str(), path_.c_str());  // unless there is a newer one
  unlink(moved.c_str());
}

Status NoteFile::Check(const std::string& path) {
  constexpr off_t kLongestLine = 512;
  static const std::regex kNote("([0-9]+|(tcp|ipc|inproc)://[^\n]*)?\n?");
  struct stat info {};
  for (const std::string& name : {path, path + ".new"}) {  // as it is written
    if (path.empty() || stat(name.c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode) && info.st_size <= kLongestLine) {
      const auto text = ReadFile(name);
      if (text.ok() && std::regex_match(*text, kNote)) continue;
    }
    return {
        ErrorCode::kExists,
        fmt::format("will not replace '{}': it holds neither a process id nor an endpoint (name "
                    "another file)",
                    name)};
  }
  return Status::Ok();
}

Status NoteFile::Write(const std::string& path, const std::string& line) {
  if (path.empty()) return Status::Ok();
  WEIR_RETURN_IF_ERROR(Check(path));
  const std::string text = line + "\n";
  WEIR_RETURN_IF_ERROR(WriteFileAtomically(path, text));
  Expect(path, line);
  return Status::Ok();
}

void NoteFile::Expect(const std::string& path, const std::string& line) {
  path_ = path;
  text_ = line + "\n";
}

}  // namespace weir
