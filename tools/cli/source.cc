#include "tools/cli/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::cli {
namespace {

// Where ":/SUBTREE" begins, or npos.
size_t EndOfEndpoint(const std::string& text) {
  const size_t letters = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  const bool has_scheme = letters != std::string::npos && text.compare(letters, 3, "://") == 0;
  size_t begin = has_scheme ? letters + 3 : 0;
  if (begin < text.size() && text[begin] == '[')
    begin = std::min(text.find(']', begin), text.size());
  return text.find(":/", begin);
}

}  // namespace

Result<Source> SplitSource(const std::string& text) {
  const size_t end = EndOfEndpoint(text);
  Source source{.endpoint = text.substr(0, end), .subtree = {}};
  for (size_t begin = end == std::string::npos ? text.size() : end + 1; begin < text.size();) {
    const size_t slash = std::min(text.find('/', begin), text.size());
    const std::string name = text.substr(begin, slash - begin);
    begin = slash + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      return {ErrorCode::kInvalid,
              fmt::format("'{}': a subtree is named from the root of the file system, without '..'",
                          text)};
    }
    source.subtree += (source.subtree.empty() ? "" : "/") + name;
  }
  return source;
}

}  // namespace weir::cli
