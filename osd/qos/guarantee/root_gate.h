// RootGate: the root of AQuA's bucket tree, which surplus must pass. Strict: a surplus request
// needs root tokens, so that all classes together get G and no more (ODIS isolates by limiting).
// Conserving: surplus passes always, and the root is only a meter.
//
// A strict gate without a token rate would stop everything, so it lets everything pass.
// Threads: the scheduler's owner. Pure.
#pragma once

#include "common/qos/qos_config.h"
#include "osd/qos/guarantee/token_bucket.h"

namespace weir::osd::qos {

class RootGate {
 public:
  RootGate(GateKind kind, uint64_t rate, TimePoint now);

  // A gate that becomes strict starts with a full bucket: what the meter ran up is not owed.
  void SetKind(GateKind kind, TimePoint now);
  void SetRate(uint64_t rate, TimePoint now);
  // `largest`: the largest request seen; `leaf_caps`: the sum of all leaf caps. Both in tokens;
  // the root never sinks below -(leaf_caps + cap) (A9), however over-committed the leaves are.
  void SetSizes(int64_t largest, int64_t leaf_caps, TimePoint now);

  // When surplus of so many tokens may pass: at once, if that is `now`. `in_steps`: those that wait
  // gather, and go together every kStep (throttle.h).
  [[nodiscard]] TimePoint PassesAt(int64_t tokens, bool in_steps, TimePoint now);
  // Own tokens and surplus both drain the root.
  void Take(int64_t tokens, TimePoint now);

  [[nodiscard]] bool limits() const { return kind_ == GateKind::kStrict && bucket_.rate() > 0; }
  [[nodiscard]] uint64_t rate() const { return bucket_.rate(); }

 private:
  GateKind kind_;
  int64_t largest_ = 0;
  int64_t leaf_caps_ = 0;
  TimePoint next_step_;  // until then they gather
  TokenBucket bucket_;
};

}  // namespace weir::osd::qos
