// Sizes, rates and durations as people type and read them.
//
// Sizes:     `4096`, `10MiB`, `10MB` (decimal), `10M` (a bare letter is binary), `1.5G`; letters in
//            any case. Rates: the same with an optional `/s`, and `max` for no limit.
// Durations: `250us`, `20ms`, `1.5h`, `1d12h`; ns us ms s m (or min) h d w.
// Errors:    kInvalid names the text, what is wrong and a good example; negative, NaN and what does
//            not fit into 63 bits are errors, 0 is not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir {

inline constexpr uint64_t kUnlimitedRate = UINT64_MAX;  // `max`

Result<uint64_t> ParseSize(std::string_view text);      // bytes
Result<uint64_t> ParseRate(std::string_view text);      // bytes per second
Result<Duration> ParseDuration(std::string_view text);  // never negative

// Short, in the largest binary unit that fits, at most two decimals: `10MiB`, `1.46KiB`, `0B`.
std::string FormatSize(uint64_t bytes);
std::string FormatRate(uint64_t bytes_per_s);  // `10MiB/s`, `max`
// From a minute on its two largest parts (`1d12h`, `1m30s`), below that one unit with at most
// three decimals (`1.5s`, `250us`).
std::string FormatDuration(Duration duration);

}  // namespace weir
