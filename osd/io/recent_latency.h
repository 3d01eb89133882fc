// RecentLatency: how long the requests of the last 5 to 10 s took. Two histograms take turns, so
// that the past is forgotten without being kept in pieces.
//
// Units: microseconds. Threads: not thread-safe.
#pragma once

#include <utility>

#include "common/base/time.h"
#include "osd/io/latency_histogram.h"

namespace weir::osd {

class RecentLatency {
 public:
  static constexpr Duration kTurn = std::chrono::seconds(5);

  void Record(uint64_t micros, TimePoint now);
  [[nodiscard]] LatencyHistogram At(TimePoint now);

 private:
  void MoveTo(TimePoint now);

  LatencyHistogram running_;
  LatencyHistogram before_;
  TimePoint began_;  // running_
};

}  // namespace weir::osd
