#include "osd/io/recent_latency.h"

namespace weir::osd {

void RecentLatency::Record(uint64_t micros, TimePoint now) {
  MoveTo(now);
  running_.Record(micros);
}

LatencyHistogram RecentLatency::At(TimePoint now) {
  MoveTo(now);
  LatencyHistogram both = before_;
  both.Add(running_);
  return both;
}

void RecentLatency::MoveTo(TimePoint now) {
  const Duration age = now - began_;
  if (age < kTurn) return;
  before_.Reset();
  if (age < 2 * kTurn) std::swap(before_, running_);
  running_.Reset();
  began_ = now;
}

}  // namespace weir::osd
