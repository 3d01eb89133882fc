// What shells offer at TAB for all programs, as files of this folder.
#pragma once

#include <string_view>

namespace weir::completions {

extern const std::string_view kBash;
extern const std::string_view kZsh;

}  // namespace weir::completions
