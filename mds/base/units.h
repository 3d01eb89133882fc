// Sizes and rates as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir::mds {

// "64KiB", "64K", "65536". kInvalid names the text.
Result<uint64_t> ParseSize(std::string_view text);
// "200MiB/s": the largest binary unit that shows the rate exactly, else one decimal.
std::string FormatRate(uint64_t bytes_per_s);

}  // namespace weir::mds
