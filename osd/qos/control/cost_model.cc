#include "osd/qos/control/cost_model.h"

#include <algorithm>

namespace weir::osd::qos {
namespace {

constexpr double kForget = 0.999;
constexpr uint64_t kSolveEvery = 8;  // samples; the first ones at once
// Sizes whose spread (variance over squared mean) is below this say nothing about the fixed part.
constexpr double kTooAlike = 1e-4;

}  // namespace

Duration DeviceClock::Completed(TimePoint submitted, TimePoint now) {
  const TimePoint since = std::max(submitted, last_completion_);
  last_completion_ = std::max(last_completion_, now);
  return std::max(now - since, Duration(0));
}

void LinearFit::Add(uint64_t bytes, Duration time) {
  const auto x = static_cast<double>(bytes);
  const double y = ToSeconds(time);
  weight_ = weight_ * kForget + 1;
  bytes_ = bytes_ * kForget + x;
  time_ = time_ * kForget + y;
  bytes_bytes_ = bytes_bytes_ * kForget + x * x;
  bytes_time_ = bytes_time_ * kForget + x * y;
  ++samples_;
  if (samples_ <= kSolveEvery || samples_ % kSolveEvery == 0) Solve();
}

void LinearFit::Solve() {
  const double mean = bytes_ / weight_;
  const double spread = bytes_bytes_ / weight_ - mean * mean;
  if (spread <= kTooAlike * mean * mean) {
    per_byte_ = bytes_ > 0 ? time_ / bytes_ : 0;
    fixed_ = bytes_ > 0 ? 0 : time_ / weight_;
    return;
  }
  per_byte_ = (bytes_time_ / weight_ - mean * time_ / weight_) / spread;
  fixed_ = time_ / weight_ - per_byte_ * mean;
  if (per_byte_ < 0) {
    per_byte_ = 0;
    fixed_ = time_ / weight_;
  } else if (fixed_ < 0) {
    fixed_ = 0;
    per_byte_ = bytes_time_ / bytes_bytes_;
  }
}

Duration LinearFit::At(uint64_t bytes) const {
  return FromSeconds(fixed_ + per_byte_ * static_cast<double>(bytes));
}

void CostModel::Submitted(const Request& request, size_t in_flight, TimePoint /*now*/) {
  solo_ = in_flight == 0 ? &request : nullptr;
}

Duration CostModel::Completed(const Request& request, TimePoint now) {
  const Duration charged = clock_.Completed(request.dispatched, now);
  busy_[static_cast<size_t>(request.op)].Add(request.bytes, charged);
  if (solo_ == &request) {
    alone_[static_cast<size_t>(request.op)].Add(request.bytes, now - request.dispatched);
    last_alone_ = now;
    solo_ = nullptr;
  }
  return charged;
}

Duration CostModel::At(const Fits& fits, OpKind op, uint64_t bytes) {
  const LinearFit& own = fits[static_cast<size_t>(op)];
  if (own.samples() >= kEnough) return own.At(bytes);
  const auto best = std::max_element(
      fits.begin(), fits.end(),
      [](const LinearFit& a, const LinearFit& b) { return a.samples() < b.samples(); });
  return best->samples() > 0 ? best->At(bytes) : Duration(0);
}

Duration CostModel::Busy(OpKind op, uint64_t bytes) const {
  return At(busy_, op, bytes);
}

Duration CostModel::Alone(OpKind op, uint64_t bytes) const {
  const Duration alone = At(alone_, op, bytes);
  return alone > Duration(0) ? alone : Busy(op, bytes);
}

}  // namespace weir::osd::qos
