// Values that people type after options, checked before anything is asked of a daemon. Each error
// is kInvalid and names the option and the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::cli {

inline constexpr uint64_t kSmallestRate = 1024;       // one token a second
inline constexpr uint64_t kLargestRate = 1ull << 50;  // 1 PiB/s: beyond any device
inline constexpr double kLargestWeight = 1e6;

enum class AtZero { kRefuse, kAllow };

// A rate within [kSmallestRate, kLargestRate], or 0 where that is allowed.
Result<uint64_t> RateValue(std::string_view option, const std::string& text,
                           AtZero zero = AtZero::kRefuse);
// The same, or UINT64_MAX for `max`.
Result<uint64_t> LimitValue(std::string_view option, const std::string& text);
Result<uint64_t> SizeValue(std::string_view option, const std::string& text, uint64_t smallest);
// Longer than nothing, at most a hundred years.
Result<Duration> DurationValue(std::string_view option, const std::string& text);
Result<double> WeightValue(std::string_view option, const std::string& text);
// `95%` or `95`, as 0.95: from 0 to 100.
Result<double> PercentValue(std::string_view option, const std::string& text);
// A whole number within [smallest, largest].
Result<uint64_t> CountValue(std::string_view option, const std::string& text, uint64_t smallest,
                            uint64_t largest);
// `20ms@95%`; 95 % without an `@`.
struct LatencyBound {
  Duration bound{0};
  double part = 0.95;
};
Result<LatencyBound> LatencyValue(std::string_view option, const std::string& text);
// For one that is to be given (common/base/good_name.h); `what` is "class", "pool" or "client".
Status CheckName(std::string_view what, const std::string& name);
// For one that exists, maybe since before the rule.
Status CheckOldName(std::string_view what, const std::string& name);
// `3` or `osd.3`.
Result<uint32_t> OsdIdValue(const std::string& text);

// kInvalid: `what` belongs to a later version.
Status NotBuilt(std::string_view what);

}  // namespace weir::cli
