#include "osd/io/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::osd {

// Values below 2^kSubBits have a bucket each; above, the exponent picks a row of 2^kSubBits buckets
// and the bits behind the leading one pick the bucket in it.
size_t LatencyHistogram::BucketOf(uint64_t micros) {
  micros = std::min<uint64_t>(micros, (uint64_t{1} << (kLargestExponent + 1)) - 1);
  if (micros < (1u << kSubBits)) return micros;
  const int exponent = std::bit_width(micros) - 1;
  const uint64_t sub = (micros >> (exponent - kSubBits)) & ((1u << kSubBits) - 1);
  return (static_cast<size_t>(exponent - kSubBits + 1) << kSubBits) + sub;
}

uint64_t LatencyHistogram::LargestIn(size_t bucket) {
  if (bucket < (1u << kSubBits)) return bucket;
  const int exponent = static_cast<int>(bucket >> kSubBits) + kSubBits - 1;
  const uint64_t sub = bucket & ((1u << kSubBits) - 1);
  const int shift = exponent - kSubBits;
  return (((uint64_t{1} << kSubBits) + sub + 1) << shift) - 1;
}

void LatencyHistogram::Record(uint64_t micros) {
  ++buckets_[BucketOf(micros)];
  ++count_;
  sum_ += micros;
}

uint64_t LatencyHistogram::Quantile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return LargestIn(i);
  }
  return LargestIn(kBuckets - 1);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
}

void LatencyHistogram::Reset() {
  buckets_.fill(0);
  count_ = 0;
  sum_ = 0;
}

std::vector<LatencyHistogram::Filled> LatencyHistogram::FilledBuckets() const {
  std::vector<Filled> filled;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] > 0) filled.push_back({LargestIn(i), buckets_[i]});
  }
  return filled;
}

}  // namespace weir::osd
