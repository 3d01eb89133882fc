#include "osd/qos/control/processor_pace.h"

#include <algorithm>

namespace weir::osd::qos {

void ProcessorPace::Choose(double pressure) {
  chosen_ = pressure;
  if (chosen_ >= 1) LetGo();
}

void ProcessorPace::Hurried(TimePoint now) {
  if (!Acts(now)) {  // what was waited before says nothing of this hurry
    looked_at_.reset();
    taken_ = 0;
    look_at_ = now;
    if (now - hurry_ends_ > kRest) LetGo();
  }
  hurry_ends_ = now + kHurryLasts;
}

void ProcessorPace::Look(Duration waited, TimePoint now) {
  const std::optional<TimePoint> before = looked_at_;
  const Duration more = waited - waited_;
  const auto taken = static_cast<double>(taken_);
  looked_at_ = now;
  waited_ = waited;
  taken_ = 0;
  look_at_ = Acts(now) ? now + kEvery : TimePoint::Max();
  if (!Acts(now) || !before || now <= *before) return;
  const double seconds = ToSeconds(now - *before);
  pressure_ += (std::clamp(ToSeconds(more) / seconds, 0.0, 1.0) - pressure_) / 2;
  Follow(taken / seconds, now);
}

void ProcessorPace::Follow(double served, TimePoint now) {
  if (chosen_ >= 1 || now < rests_until_) return;
  most_ = std::max(most_, served);
  if (!rate_) {
    if (pressure_ <= chosen_ || served <= 0) return;
    rate_ = served;
    next_ = now;
  }
  const double factor = pressure_ > 0 ? std::clamp(chosen_ / pressure_, kDown, kUp) : kUp;
  rate_ = std::max(*rate_ * factor, most_ / kDeepest);
  const bool holds_nobody = factor >= 1 && *rate_ > 2 * served;
  if (holds_nobody || IsFutile(now)) LetGo();
}

void ProcessorPace::LetGo() {
  rate_.reset();
  most_ = 0;
  deepest_since_.reset();
}

bool ProcessorPace::IsFutile(TimePoint now) {
  const bool deepest = pressure_ > chosen_ && *rate_ <= most_ / kDeepest;
  if (!deepest) {
    deepest_since_.reset();
    return false;
  }
  if (!deepest_since_) deepest_since_ = now;
  if (now - *deepest_since_ < kFutile) return false;
  rests_until_ = now + kRest;
  return true;
}

void ProcessorPace::Take(uint64_t bytes, TimePoint now) {
  taken_ += bytes;
  if (!Limits(now)) return;
  next_ = std::max(next_, now - kSaved) + FromSeconds(static_cast<double>(bytes) / *rate_);
}

}  // namespace weir::osd::qos
