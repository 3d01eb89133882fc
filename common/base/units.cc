#include "common/base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>

namespace weir {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kLargest = INT64_MAX;

struct Unit {
  std::string_view name;  // lower case
  uint64_t factor;
};

constexpr uint64_t Power(uint64_t base, int exponent) {
  return exponent == 0 ? 1 : base * Power(base, exponent - 1);
}

constexpr std::array kSizeUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", Power(1024, 1)},
    Unit{"m", Power(1024, 2)},
    Unit{"g", Power(1024, 3)},
    Unit{"t", Power(1024, 4)},
    Unit{"p", Power(1024, 5)},
    Unit{"kib", Power(1024, 1)},
    Unit{"mib", Power(1024, 2)},
    Unit{"gib", Power(1024, 3)},
    Unit{"tib", Power(1024, 4)},
    Unit{"pib", Power(1024, 5)},
    Unit{"kb", Power(1000, 1)},
    Unit{"mb", Power(1000, 2)},
    Unit{"gb", Power(1000, 3)},
    Unit{"tb", Power(1000, 4)},
    Unit{"pb", Power(1000, 5)},
};
constexpr uint64_t kSecond = 1'000'000'000;
constexpr std::array kTimeUnits = {
    Unit{"ns", 1},
    Unit{"us", 1000},
    Unit{"\xc2\xb5s", 1000},  // micro sign
    Unit{"ms", 1'000'000},
    Unit{"s", kSecond},
    Unit{"m", 60 * kSecond},
    Unit{"min", 60 * kSecond},
    Unit{"h", 3600 * kSecond},
    Unit{"d", 24UL * 3600 * kSecond},
    Unit{"w", 7UL * 24 * 3600 * kSecond},
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number without sign or exponent, kept exact: digits * 10^-decimals.
struct Number {
  uint64_t digits = 0;
  int decimals = 0;
};

// Takes a number off the front. None when there is no digit, or more digits than make sense.
std::optional<Number> TakeNumber(std::string_view* text) {
  constexpr int kMostDigits = 19;
  Number number;
  int count = 0;
  bool point = false, any = false;
  for (; !text->empty(); text->remove_prefix(1)) {
    const char c = text->front();
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(c)) break;
    any = true;
    // Leading zeros do not count.
    if ((count > 0 || c != '0') && ++count > kMostDigits) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<uint64_t>(c - '0');
    if (point && ++number.decimals > kMostDigits) return std::nullopt;
  }
  if (!any) return std::nullopt;
  return number;
}

std::optional<uint64_t> Scale(const Number& number, uint64_t factor) {
  const Wide value = static_cast<Wide>(number.digits) * factor / Power(10, number.decimals);
  if (value > kLargest) return std::nullopt;
  return static_cast<uint64_t>(value);
}

template <size_t N>
std::optional<uint64_t> FactorOf(const std::array<Unit, N>& units, std::string_view name) {
  const std::string lower = Lower(name);
  const auto it = std::find_if(units.begin(), units.end(),
                               [&](const Unit& unit) { return unit.name == lower; });
  if (it == units.end()) return std::nullopt;
  return it->factor;
}

Status Bad(std::string_view kind, std::string_view text, std::string_view why,
           std::string_view example) {
  std::string message = "'" + std::string(text.substr(0, 64)) + "' is no " + std::string(kind);
  if (!why.empty()) message += ": " + std::string(why);
  return {ErrorCode::kInvalid, message + "; write for example " + std::string(example)};
}

Result<uint64_t> ParseBytes(std::string_view kind, std::string_view whole, std::string_view text,
                            std::string_view example) {
  if (text.starts_with('-')) return Bad(kind, whole, "it is negative", example);
  const auto number = TakeNumber(&text);
  if (!number) return Bad(kind, whole, "it does not start with a sensible number", example);
  if (text.size() > 1 && text.starts_with(' ')) text.remove_prefix(1);
  const auto factor = FactorOf(kSizeUnits, text);
  if (!factor) return Bad(kind, whole, "unknown unit '" + std::string(text) + "'", example);
  const auto bytes = Scale(*number, *factor);
  if (!bytes) return Bad(kind, whole, "it is too large", example);
  return *bytes;
}

// `value` with at most `decimals` decimals, no trailing zeros.
std::string Short(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  std::string result = text.data();
  if (result.find('.') != std::string::npos) {
    result.erase(result.find_last_not_of('0') + 1);
    if (result.back() == '.') result.pop_back();
  }
  return result;
}

// Index of the largest of the growing `factors` that fits, after rounding to `decimals` decimals:
// 1048575 bytes are 1MiB, not 1024KiB.
template <size_t N>
size_t PickUnit(const std::array<Unit, N>& units, double value, int decimals) {
  size_t i = N - 1;
  const double half = 0.5 * std::pow(10, -decimals);
  while (i > 0) {
    const auto here = static_cast<double>(units[i].factor);
    const auto below = static_cast<double>(units[i - 1].factor);
    if (value >= here || value / below + half >= here / below) break;
    --i;
  }
  return i;
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  return ParseBytes("size", text, text, "4096, 10MiB or 1.5G");
}

Result<uint64_t> ParseRate(std::string_view text) {
  if (Lower(text) == "max") return kUnlimitedRate;
  std::string_view bytes = text;
  if (bytes.ends_with("/s")) bytes.remove_suffix(2);
  return ParseBytes("rate", text, bytes, "200MiB/s, 10M or max");
}

Result<Duration> ParseDuration(std::string_view text) {
  constexpr std::string_view kKind = "duration", kExample = "250us, 20ms, 1.5h or 1d12h";
  if (text.starts_with('-')) return Bad(kKind, text, "it is negative", kExample);
  if (text.empty()) return Bad(kKind, text, "it is empty", kExample);
  uint64_t total = 0;
  uint64_t last_factor = UINT64_MAX;
  for (std::string_view rest = text; !rest.empty();) {
    const auto number = TakeNumber(&rest);
    if (!number) return Bad(kKind, text, "a number is missing or has too many digits", kExample);
    const auto is_digit =
        std::find_if(rest.begin(), rest.end(), [](char c) { return IsDigit(c) || c == '.'; });
    const std::string_view name = rest.substr(0, static_cast<size_t>(is_digit - rest.begin()));
    rest.remove_prefix(name.size());
    if (name.empty()) return Bad(kKind, text, "a unit is missing", kExample);
    const auto factor = FactorOf(kTimeUnits, name);
    if (!factor) return Bad(kKind, text, "unknown unit '" + std::string(name) + "'", kExample);
    if (*factor >= last_factor) return Bad(kKind, text, "larger units come first", kExample);
    last_factor = *factor;
    const auto part = Scale(*number, *factor);
    if (!part || *part > kLargest - total) return Bad(kKind, text, "it is too large", kExample);
    total += *part;
  }
  return Duration(static_cast<int64_t>(total));
}

std::string FormatSize(uint64_t bytes) {
  constexpr std::array kUnits = {
      Unit{"B", 1},
      Unit{"KiB", Power(1024, 1)},
      Unit{"MiB", Power(1024, 2)},
      Unit{"GiB", Power(1024, 3)},
      Unit{"TiB", Power(1024, 4)},
      Unit{"PiB", Power(1024, 5)},
  };
  const auto value = static_cast<double>(bytes);
  const Unit& unit = kUnits[PickUnit(kUnits, value, 2)];
  // Whole numbers of a unit are exact beyond the 53 bits of a double.
  if (bytes % unit.factor == 0) {
    return std::to_string(bytes / unit.factor) + std::string(unit.name);
  }
  return Short(value / static_cast<double>(unit.factor), 2) + std::string(unit.name);
}

std::string FormatRate(uint64_t bytes_per_s) {
  return bytes_per_s == kUnlimitedRate ? "max" : FormatSize(bytes_per_s) + "/s";
}

std::string FormatDuration(Duration duration) {
  if (duration.count() < 0) {
    // The most negative value has no positive twin.
    return "-" + FormatDuration(duration == Duration::min() ? Duration::max() : -duration);
  }
  constexpr std::array kBelowMinute = {Unit{"ns", 1}, Unit{"us", 1000}, Unit{"ms", 1'000'000},
                                       Unit{"s", kSecond}};
  constexpr std::array kFromMinute = {Unit{"d", 24UL * 3600 * kSecond}, Unit{"h", 3600 * kSecond},
                                      Unit{"m", 60 * kSecond}, Unit{"s", kSecond}};
  auto ns = static_cast<uint64_t>(duration.count());
  if (ns == 0) return "0s";
  if (ns < 60 * kSecond) {
    const Unit& unit = kBelowMinute[PickUnit(kBelowMinute, static_cast<double>(ns), 3)];
    return Short(static_cast<double>(ns) / static_cast<double>(unit.factor), 3) +
           std::string(unit.name);
  }
  std::string text;
  int parts = 0;
  for (const Unit& unit : kFromMinute) {
    const uint64_t count = ns / unit.factor;
    ns %= unit.factor;
    if (count > 0) text += std::to_string(count) + std::string(unit.name);
    if (parts > 0 || count > 0) ++parts;
    if (parts == 2) break;
  }
  return text;
}

}  // namespace weir
