// Rank: a key of any kind as an unsigned number, equal ones in order of sequence. So one comparison
// of two machine words, without a branch, orders whatever stands in a heap or a tree: which way it
// goes is anybody's guess, and a wrong guess costs the processor more than the comparison.
#pragma once

#include <bit>
#include <cstdint>

#include "common/base/time.h"

namespace weir {

struct Rank {
  uint64_t value = 0;
  uint64_t sequence = 0;

  friend bool operator<(const Rank& a, const Rank& b) { return a.Wide() < b.Wide(); }

 private:
  __extension__ using Number = unsigned __int128;
  [[nodiscard]] Number Wide() const { return static_cast<Number>(value) << 64 | sequence; }
};

// Keys as numbers in the same order, and back. No key is a NaN; -0.0 comes back as 0.0.
template <typename Key>
struct Ranked;

template <>
struct Ranked<uint64_t> {
  static uint64_t From(uint64_t key) { return key; }
  static uint64_t Back(uint64_t value) { return value; }
};

template <>
struct Ranked<int64_t> {
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static uint64_t From(int64_t key) { return static_cast<uint64_t>(key) ^ kSign; }
  static int64_t Back(uint64_t value) { return static_cast<int64_t>(value ^ kSign); }
};

template <>
struct Ranked<TimePoint> {
  static uint64_t From(TimePoint key) { return Ranked<int64_t>::From(key.ns); }
  static TimePoint Back(uint64_t value) { return {Ranked<int64_t>::Back(value)}; }
};

// The bits of positive numbers ascend with them, those of negative ones descend.
template <>
struct Ranked<double> {
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static uint64_t From(double key) {
    const auto bits = std::bit_cast<uint64_t>(key + 0.0);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  static double Back(uint64_t value) {
    return std::bit_cast<double>((value & kSign) != 0 ? value ^ kSign : ~value);
  }
};

}  // namespace weir
