// Small files that daemons and tools leave for each other.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir {

// The whole file. kNotFound when there is none; kCorrupt for what is none of ours: no regular file,
// or larger than 64 MiB; else what the operating system says.
Result<std::string> ReadFile(const std::string& path);
// Replaces it in one step, durably: a reader sees the old text or the new.
Status WriteFileAtomically(const std::string& path, const std::string& text);

// Holds a file locked while it lives, against every other process, and says in it who has it: our
// pid.
class LockFile {
 public:
  // kBusy names the pid that has it.
  static Result<LockFile> Take(const std::string& path);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) noexcept;
  ~LockFile();
  // Replaces what the file says of its holder; it starts with a pid.
  void Write(const std::string& text) const;

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace weir
