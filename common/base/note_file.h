// NoteFile: a line that other programs wait for or look up: the process that serves (--pid-file),
// the endpoint that is reached (--ready-file). There as a whole, or not there; gone when this
// object goes.
//
// Errors: kExists: at the path lies something else than such a line, which stays as it is.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir {

class NoteFile {
 public:
  NoteFile() = default;
  // Takes the file away unless somebody else has written it since: who replaced a mount, say.
  ~NoteFile();
  NoteFile(const NoteFile&) = delete;
  NoteFile& operator=(const NoteFile&) = delete;

  // Whether Write would be refused, before there is anything to write. An empty path: no.
  static Status Check(const std::string& path);
  // `path` empty: there is none.
  Status Write(const std::string& path, const std::string& line);
  // For one that another process writes, which is not the one that ends last.
  void Expect(const std::string& path, const std::string& line);

 private:
  std::string path_, text_;
};

}  // namespace weir
