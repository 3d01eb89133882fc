#include "tools/osdctl/log_names.h"

#include <algorithm>
#include <array>

namespace weir::osdctl {
namespace {

constexpr std::string_view kHidden = "\u2026";
constexpr std::array<std::string_view, 4> kOurPaths = {"/dev/", "/etc/weirfs/", "/var/lib/weirfs",
                                                       "/run/"};
constexpr std::array<std::string_view, 4> kOurNames = {"class ", "pool ", "mount ", "at "};
constexpr std::string_view kEndsPath = " \t\n'\",;:()[]";

bool EndsWithOneOf(std::string_view text, const std::array<std::string_view, 4>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.ends_with(word); });
}

bool IsOurPath(std::string_view path) {
  return std::any_of(kOurPaths.begin(), kOurPaths.end(),
                     [path](std::string_view ours) { return path.starts_with(ours); });
}

}  // namespace

std::string WithoutNames(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    const size_t line = std::min(text.find('\n', at), text.size());
    const size_t quote = c == '\'' ? text.find('\'', at + 1) : std::string_view::npos;
    const bool begins_word =
        at == 0 || kEndsPath.find(text[at - 1]) != std::string_view::npos || text[at - 1] == '=';
    if (quote < line) {
      const std::string_view name = text.substr(at + 1, quote - at - 1);
      const bool ours = EndsWithOneOf(out, kOurNames) || IsOurPath(name);
      out += "'" + std::string(ours ? name : kHidden) + "'";
      at = quote + 1;
    } else if (c == '/' && begins_word) {
      const size_t end = std::min(text.find_first_of(kEndsPath, at), text.size());
      const std::string_view path = text.substr(at, end - at);
      out += IsOurPath(path) ? path : kHidden;
      at = end;
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

}  // namespace weir::osdctl
