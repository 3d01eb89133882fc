// BandwidthMaximizer: raises the root rate G above the configured G0 while the device can do more
// (AQuA §5.3; RULES.md §3.5, A13, A14). With O observed, A attainable: O <= min(G, A) and
//
//   O below both        nothing to do
//   A < G               the device limits: nothing to raise
//   G < A and O at G    raise G
//
// The third case is seen as time during which some head lacked root tokens although the device had
// a free slot: more than 20 % of a period. Steps: +5 % of G0 when capped and no promise is broken,
// -10 % of G0 (never below G0) when one is. Pure. Threads: the scheduler's owner.
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace weir::osd::qos {

class BandwidthMaximizer {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(2);

  // Starts with G = G0.
  BandwidthMaximizer(uint64_t base_rate, TimePoint now);

  // From now on the root does (or does not) hold back somebody for whom the device has a slot.
  void Observe(bool capped, TimePoint now);
  // Ends the period: the new G. `violated`: a promised class with enough demand got too little.
  uint64_t Step(bool violated, TimePoint now);

  [[nodiscard]] TimePoint period_start() const { return period_start_; }

 private:
  uint64_t base_rate_;
  uint64_t rate_;
  TimePoint period_start_;
  TimePoint observed_;
  Duration capped_time_{0};
  bool capped_ = false;
};

}  // namespace weir::osd::qos
