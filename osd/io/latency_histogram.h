// LatencyHistogram: how long requests took, in log-spaced buckets small enough for one per class.
//
// 16 buckets per power of two, so that a quantile is at most 1/16 too high. 3.5 KiB each.
//
// Units:   microseconds; what is longer than about an hour counts as an hour.
// Threads: not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::osd {

class LatencyHistogram {
 public:
  void Record(uint64_t micros);
  // The smallest recorded-bucket end that at least `fraction` (0..1) of all values do not exceed;
  // 0 when nothing was recorded.
  [[nodiscard]] uint64_t Quantile(double fraction) const;
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t sum() const { return sum_; }
  // The buckets that counted something, in growing order of their largest value.
  struct Filled {
    uint64_t largest;
    uint64_t count;
  };
  [[nodiscard]] std::vector<Filled> FilledBuckets() const;
  void Reset();
  void Add(const LatencyHistogram& other);

 private:
  static constexpr int kSubBits = 4;
  static constexpr int kLargestExponent = 31;
  static constexpr size_t kBuckets = (kLargestExponent - kSubBits + 2) << kSubBits;
  static size_t BucketOf(uint64_t micros);
  static uint64_t LargestIn(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace weir::osd
