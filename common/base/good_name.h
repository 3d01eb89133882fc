// Names that people give to classes, pools and mounts.
#pragma once

#include <string_view>

namespace weir {

// What IsGoodName asks for, in words.
inline constexpr std::string_view kGoodName =
    "1 to 64 of the characters A-Z a-z 0-9 . _ -, the first of them neither . nor -";

// A name that no program takes for an option and no path for a step up.
bool IsGoodName(std::string_view name);
// What is left of the rule for names that were given before it: the first character may be any.
bool MayBeName(std::string_view name);

}  // namespace weir
