#include "common/monitor/latency_counts.h"

#include <algorithm>
#include <cmath>

#include "common/wire/osd.pb.h"

namespace weir::monitor {

uint64_t LatencyCounts::count() const {
  uint64_t total = 0;
  for (const auto& [largest, requests] : by_largest) total += requests;
  return total;
}

uint64_t LatencyCounts::Quantile(double fraction) const {
  const auto wanted = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count()))));
  uint64_t seen = 0;
  for (const auto& [largest, requests] : by_largest) {
    seen += requests;
    if (seen >= wanted) return largest;
  }
  return 0;
}

uint64_t LatencyCounts::AtMost(uint64_t micros) const {
  uint64_t total = 0;
  for (const auto& [largest, requests] : by_largest) {
    if (largest > micros) break;
    total += requests;
  }
  return total;
}

void LatencyCounts::Add(const LatencyCounts& other) {
  for (const auto& [largest, requests] : other.by_largest) by_largest[largest] += requests;
  sum_us += other.sum_us;
}

LatencyCounts LatencyCounts::Since(const LatencyCounts& before) const {
  LatencyCounts grown = *this;
  for (const auto& [largest, requests] : before.by_largest) {
    const auto now = grown.by_largest.find(largest);
    if (now == grown.by_largest.end() || now->second < requests) return *this;
    now->second -= requests;
    if (now->second == 0) grown.by_largest.erase(now);
  }
  if (before.sum_us > sum_us) return *this;
  grown.sum_us -= before.sum_us;
  return grown;
}

LatencyCounts LatenciesOf(const wire::ClassStats& stats) {
  LatencyCounts counts;
  const int buckets = std::min(stats.latency_ends_us_size(), stats.latency_counts_size());
  for (int i = 0; i < buckets; ++i) {
    counts.by_largest[stats.latency_ends_us(i)] += stats.latency_counts(i);
  }
  counts.sum_us = stats.latency_sum_us();
  return counts;
}

}  // namespace weir::monitor
