#include "osd/qos/device/cost_model.h"

#include <algorithm>

#include "common/qos/qos_config.h"

namespace weir::osd::qos {
namespace {

constexpr uint64_t kSolveEvery = 8;  // samples; the first ones at once
// Sizes whose spread (variance over squared mean) is below this say nothing about the fixed part.
constexpr double kTooAlike = 1e-4;
constexpr double kKeepRate = 1 - 1.0 / 64;  // of the rate, from one request to the next

}  // namespace

Duration DeviceClock::Completed(TimePoint submitted, TimePoint now) {
  const TimePoint since = std::max(submitted, last_completion_);
  last_completion_ = std::max(last_completion_, now);
  return std::max(now - since, Duration(0));
}

void LinearFit::Add(uint64_t bytes, Duration time) {
  const auto x = static_cast<double>(bytes);
  const double y = ToSeconds(time);
  weight_ = weight_ * keep_ + 1;
  bytes_ = bytes_ * keep_ + x;
  time_ = time_ * keep_ + y;
  bytes_bytes_ = bytes_bytes_ * keep_ + x * x;
  bytes_time_ = bytes_time_ * keep_ + x * y;
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

Duration CostModel::Completed(const Request& request, TimePoint now) {
  const auto kind = static_cast<size_t>(request.op);
  const Duration charged = clock_.Completed(request.dispatched, now);
  charged_[kind].Add(request.bytes, charged);
  last_was_alone_ = solo_ == &request;
  if (last_was_alone_) {
    alone_[kind].Add(request.bytes, now - request.dispatched);
    last_alone_ = now;
    ++alone_samples_;
    solo_ = nullptr;
  }
  worked_ = kKeepRate * worked_ + ToSeconds(charged);
  const uint64_t worth = std::max(request.bytes, kTokenBytes);
  worked_bytes_ = kKeepRate * worked_bytes_ + static_cast<double>(worth);
  LearnUse(request, charged);
  return charged;
}

void CostModel::LearnUse(const Request& request, Duration charged) {
  window_charged_ += ToSeconds(charged);
  window_alone_ += ToSeconds(Alone(request.op, request.bytes));
  if (++in_window_ < kWindow) return;
  // More than one by one would take: the device, or the line, has changed. Not a use.
  if (window_alone_ > 0) use_ += 0.25 * (std::min(1.0, window_charged_ / window_alone_) - use_);
  in_window_ = 0;
  window_charged_ = window_alone_ = 0;
}

const LinearFit* CostModel::BestOf(const Fits& fits, OpKind op) {
  const LinearFit& own = fits[static_cast<size_t>(op)];
  if (own.samples() > 0) return &own;
  const auto* best = std::max_element(
      fits.begin(), fits.end(),
      [](const LinearFit& a, const LinearFit& b) { return a.samples() < b.samples(); });
  return best->samples() > 0 ? best : nullptr;
}

const LinearFit* CostModel::Line(OpKind op) const {
  return BestOf(alone_samples_ > 0 ? alone_ : charged_, op);
}

Duration CostModel::Alone(OpKind op, uint64_t bytes) const {
  const LinearFit* line = Line(op);
  return line == nullptr ? Duration(0) : FromSeconds(line->Seconds(bytes));
}

Duration CostModel::Busy(OpKind op, uint64_t bytes) const {
  const Duration busy = FromSeconds(ToSeconds(Alone(op, bytes)) * use_);
  return busy > Duration(0) ? busy : Duration(static_cast<int64_t>(bytes));
}

}  // namespace weir::osd::qos
