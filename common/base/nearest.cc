#include "common/base/nearest.h"

#include <algorithm>

namespace weir {
namespace {

// How many letters are to be typed, left out, changed, or swapped with the next one.
size_t TypingErrors(std::string_view typed, std::string_view meant) {
  std::vector<std::vector<size_t>> errors(typed.size() + 1, std::vector<size_t>(meant.size() + 1));
  for (size_t i = 0; i <= typed.size(); ++i) {
    for (size_t j = 0; j <= meant.size(); ++j) {
      size_t& here = errors[i][j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const bool same = typed[i - 1] == meant[j - 1];
      here = std::min(
          {errors[i - 1][j] + 1, errors[i][j - 1] + 1, errors[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && typed[i - 1] == meant[j - 2] && typed[i - 2] == meant[j - 1];
      if (swapped) here = std::min(here, errors[i - 2][j - 2] + 1);
    }
  }
  return errors.back().back();
}

}  // namespace

std::string NearestOf(const std::string& word, const std::vector<std::string>& names) {
  std::string nearest;
  size_t least = 1 + word.size() / 4;  // more is another word
  for (const std::string& name : names) {
    const bool begins = word.size() > 1 && (name.starts_with(word) || word.starts_with(name));
    const size_t errors = begins ? 1 : TypingErrors(word, name);
    if (errors > least || (errors == least && !nearest.empty())) continue;
    least = errors;
    nearest = name;
  }
  return nearest;
}

}  // namespace weir
