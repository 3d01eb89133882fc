#include "tools/cli/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "common/base/good_name.h"
#include "common/base/units.h"

namespace weir::cli {
namespace {

Status Bad(std::string_view option, const std::string& text, std::string_view why) {
  return {ErrorCode::kInvalid, fmt::format("{} '{}': {}", option, text, why)};
}

Status NoName(std::string_view what, const std::string& name) {
  return {ErrorCode::kInvalid, fmt::format("'{}' is no {} name: {}", name, what, kGoodName)};
}

}  // namespace

Result<uint64_t> RateValue(std::string_view option, const std::string& text, AtZero zero) {
  auto rate = ParseRate(text);
  if (!rate.ok()) return rate.status().Annotate(option);
  if (*rate == 0 && zero == AtZero::kAllow) return rate;
  if (*rate == UINT64_MAX) return Bad(option, text, "needs a number here, such as 200MiB/s");
  if (*rate < kSmallestRate) {
    return Bad(option, text, "too low: at least 1KiB/s, the size of a token (as in 200MiB/s)");
  }
  if (*rate > kLargestRate) return Bad(option, text, "absurdly high: at most 1PiB/s");
  return rate;
}

Result<uint64_t> LimitValue(std::string_view option, const std::string& text) {
  if (text == "max") return UINT64_MAX;
  return RateValue(option, text);
}

Result<uint64_t> SizeValue(std::string_view option, const std::string& text, uint64_t smallest) {
  auto size = ParseSize(text);
  if (!size.ok()) return size.status().Annotate(option);
  if (*size < smallest) {
    return Bad(option, text, fmt::format("too small: at least {}", FormatSize(smallest)));
  }
  return size;
}

Result<Duration> DurationValue(std::string_view option, const std::string& text) {
  constexpr Duration kLongest = std::chrono::hours(24 * 36525);
  auto duration = ParseDuration(text);
  if (!duration.ok()) return duration.status().Annotate(option);
  if (*duration <= Duration::zero()) return Bad(option, text, "must be longer than nothing");
  if (*duration > kLongest) return Bad(option, text, "absurdly long: at most a hundred years");
  return duration;
}

Result<double> WeightValue(std::string_view option, const std::string& text) {
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(weight)) {
    return Bad(option, text, "not a number (as in 2 or 0.5)");
  }
  if (weight <= 0) return Bad(option, text, "must be above 0");
  if (weight < 1 / kLargestWeight || weight > kLargestWeight) {
    return Bad(option, text, "absurd: between 0.000001 and 1000000");
  }
  return weight;
}

Result<double> PercentValue(std::string_view option, const std::string& text) {
  const std::string number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  if (!whole || !(percent >= 0 && percent <= 100)) {
    return Bad(option, text, "not a percentage from 0% to 100% (as in 95%)");
  }
  return percent / 100;
}

Result<uint64_t> CountValue(std::string_view option, const std::string& text, uint64_t smallest,
                            uint64_t largest) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || count < smallest || count > largest) {
    return Bad(option, text, fmt::format("a whole number from {} to {}", smallest, largest));
  }
  return count;
}

Result<LatencyBound> LatencyValue(std::string_view option, const std::string& text) {
  LatencyBound value;
  const size_t at = text.find('@');
  WEIR_ASSIGN_OR_RETURN(value.bound, DurationValue(option, text.substr(0, at)));
  if (value.bound > std::chrono::hours(1)) return Bad(option, text, "at most an hour");
  if (at == std::string::npos) return value;
  WEIR_ASSIGN_OR_RETURN(value.part, PercentValue(option, text.substr(at + 1)));
  if (value.part <= 0 || value.part >= 1) {
    return Bad(option, text, "holds for more than 0% and less than 100% of the requests");
  }
  return value;
}

Status CheckName(std::string_view what, const std::string& name) {
  return IsGoodName(name) ? Status::Ok() : NoName(what, name);
}

Status CheckOldName(std::string_view what, const std::string& name) {
  return MayBeName(name) ? Status::Ok() : NoName(what, name);
}

Result<uint32_t> OsdIdValue(const std::string& text) {
  const std::string digits = text.starts_with("osd.") ? text.substr(4) : text;
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return {ErrorCode::kInvalid, fmt::format("'{}' is no OSD id (as in 0 or osd.0)", text)};
  }
  return id;
}

Status NotBuilt(std::string_view what) {
  return {ErrorCode::kInvalid, fmt::format("{} is not built in this version", what)};
}

}  // namespace weir::cli
