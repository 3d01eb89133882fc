// PidFile: names a process in a file as long as this object lives.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/result.h"

namespace weir::weirfs {

class PidFile {
 public:
  PidFile() = default;
  // Takes the file away unless somebody else has written it since: who replaced a mount, say.
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

  // `path` empty: there is none.
  Status Write(const std::string& path, pid_t pid);
  // For one that another process writes, which is not the one that ends last.
  void Expect(const std::string& path, pid_t pid);

 private:
  std::string path_, text_;
};

}  // namespace weir::weirfs
