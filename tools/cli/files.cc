#include "tools/cli/files.h"

#include <deque>
#include <fstream>

namespace weir::cli {

std::string TailOf(const std::string& path, size_t lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) text += "\n  " + line;
  return text;
}

}  // namespace weir::cli
