#include "common/qos/profile_pattern.h"

#include "common/base/units.h"

namespace weir {

Result<ProfilePattern> ParseProfilePattern(std::string_view text) {
  constexpr uint64_t kBlock = 4096;
  constexpr uint64_t kLargest = 4 << 20;
  const Status wrong(ErrorCode::kInvalid,
                     "pattern '" + std::string(text) +
                         "': wants mixed, read or write, and maybe a size from "
                         "4KiB to 4MiB in blocks of 4KiB, as in write:64KiB");
  ProfilePattern pattern;
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (name == "read") {
    pattern.write_percent = 0;
  } else if (name == "write") {
    pattern.write_percent = 100;
  } else if (name != "mixed") {
    return wrong;
  }
  if (colon == std::string_view::npos) return pattern;
  const Result<uint64_t> size = ParseSize(text.substr(colon + 1));
  if (!size.ok() || *size < kBlock || *size > kLargest || *size % kBlock != 0) return wrong;
  pattern.size = *size;
  return pattern;
}

}  // namespace weir
