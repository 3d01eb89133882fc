#include "osd/qos/guarantee/root_gate.h"

#include <algorithm>

#include "osd/qos/throttle.h"

namespace weir::osd::qos {

RootGate::RootGate(GateKind kind, uint64_t rate, TimePoint now)
    : kind_(kind), bucket_(rate, BucketCap(rate, 0), now) {}

void RootGate::SetKind(GateKind kind, TimePoint now) {
  if (kind == kind_) return;
  kind_ = kind;
  bucket_ = TokenBucket(bucket_.rate(), bucket_.cap(), now);
}

void RootGate::SetRate(uint64_t rate, TimePoint now) {
  const int64_t cap = BucketCap(rate, largest_);
  if (bucket_.rate() == 0) bucket_ = TokenBucket(rate, cap, now);
  bucket_.SetRate(rate, cap, now);
}

void RootGate::SetSizes(int64_t largest, int64_t leaf_caps, TimePoint now) {
  largest_ = largest;
  leaf_caps_ = leaf_caps;
  bucket_.SetRate(bucket_.rate(), BucketCap(bucket_.rate(), largest), now);
}

TimePoint RootGate::PassesAt(int64_t tokens, bool in_steps, TimePoint now) {
  const bool gathers = in_steps && now < next_step_;
  const TimePoint due = limits() ? bucket_.CoversAt(tokens, now) : now;
  if (due <= now) return gathers ? next_step_ : now;
  if (in_steps && !gathers) next_step_ = now + kStep;
  return in_steps ? std::max(due, next_step_) : due;
}

void RootGate::Take(int64_t tokens, TimePoint now) {
  bucket_.Refill(now);
  bucket_.TakeDownTo(-(leaf_caps_ + bucket_.cap()), tokens);
}

}  // namespace weir::osd::qos
