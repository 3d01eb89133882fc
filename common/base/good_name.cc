#include "common/base/good_name.h"

#include <algorithm>

namespace weir {
namespace {

constexpr size_t kLongest = 64;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool IsGoodName(std::string_view name) {
  return MayBeName(name) && name.front() != '.' && name.front() != '-';
}

bool MayBeName(std::string_view name) {
  if (name.empty() || name.size() > kLongest) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace weir
