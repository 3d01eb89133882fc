#include "tools/weirfs/pid_file.h"

#include <unistd.h>

#include "tools/cli/files.h"

namespace weir::weirfs {

PidFile::~PidFile() {
  if (path_.empty()) return;
  const auto there = cli::ReadFile(path_);
  if (there.ok() && *there == text_) unlink(path_.c_str());
}

Status PidFile::Write(const std::string& path, pid_t pid) {
  if (path.empty()) return Status::Ok();
  const std::string text = std::to_string(pid) + "\n";
  WEIR_RETURN_IF_ERROR(cli::WriteFileAtomically(path, text));
  Expect(path, pid);
  return Status::Ok();
}

void PidFile::Expect(const std::string& path, pid_t pid) {
  path_ = path;
  text_ = std::to_string(pid) + "\n";
}

}  // namespace weir::weirfs
