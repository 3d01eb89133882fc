#include "common/base/note_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <regex>

#include "common/base/files.h"

namespace weir {

NoteFile::~NoteFile() {
  if (path_.empty()) return;
  const auto there = ReadFile(path_);
  if (there.ok() && *there == text_) unlink(path_.c_str());
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
