#include "mds/base/units.h"

#include <charconv>
#include <cstdio>

namespace weir::mds {

Result<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  int shift = -1;
  if (unit.empty()) shift = 0;
  if (unit == "K" || unit == "KiB") shift = 10;
  if (unit == "M" || unit == "MiB") shift = 20;
  if (unit == "G" || unit == "GiB") shift = 30;
  if (error != std::errc() || shift < 0 || number > (UINT64_MAX >> (shift + 1))) {
    return Status(ErrorCode::kInvalid,
                  "'" + std::string(text) + "' is no size; write for example 64KiB or 4MiB");
  }
  return number << shift;
}

std::string FormatRate(uint64_t bytes_per_s) {
  constexpr const char* kUnits[] = {"B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"};
  int unit = 0;
  double value = static_cast<double>(bytes_per_s);
  while (unit < 4 && value >= 1024) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f%s" : "%.1f%s", value, kUnits[unit]);
  return text;
}

}  // namespace weir::mds
