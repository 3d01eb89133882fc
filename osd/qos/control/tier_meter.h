// TierMeter: how busy one tier is and what it can do when it always is (RULES.md A34).
//
// Fed with what the tier did in consecutive stretches of time. The capacity is the 95th percentile
// of the rates of those stretches in which it was busy nearly throughout: most stretches are slowed
// down by something, and the few best are luck. Threads: one owner. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/time.h"

namespace weir::osd::qos {

// What a tier did in one stretch of time.
struct TierActivity {
  uint64_t completed = 0;  // requests
  Duration busy{0};        // in which it could not take more
};

class TierMeter {
 public:
  static constexpr double kBusy = 0.98;

  // Requires: stretch > 0; longer ones than a second blur, shorter ones jitter.
  void Observe(const TierActivity& activity, Duration stretch);

  // Of the last stretch, in [0, 1].
  [[nodiscard]] double busy() const { return busy_; }
  // Requests per second; 0 as long as the tier has not been busy kSamplesMin times.
  [[nodiscard]] double Capacity() const;
  // What it can do at least: a quarter more than it did when it could have taken more. As it gets
  // so much to do, that grows, until it is full and its capacity known. 0: it has done nothing yet.
  [[nodiscard]] double AtLeast() const { return at_least_; }

 private:
  static constexpr size_t kSamples = 64;
  static constexpr size_t kSamplesMin = 5;

  static constexpr double kMore = 1.25;

  double busy_ = 0;
  double spare_rate_ = 0;  // of the last stretch, if it was not full
  double at_least_ = 0;
  std::array<double, kSamples> rates_{};
  size_t next_ = 0;
  size_t known_ = 0;
};

}  // namespace weir::osd::qos
