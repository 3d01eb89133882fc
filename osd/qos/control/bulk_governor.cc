#include "osd/qos/control/bulk_governor.h"

#include <algorithm>
#include <utility>

namespace weir::osd::qos {

void BulkGovernor::Choose(double pressure) {
  chosen_ = pressure;
  if (chosen_ >= 1) LetGo();
}

void BulkGovernor::Guarded(TimePoint until, TimePoint now) {
  if (!Acts(now) && now < until) {  // what was waited before says nothing of now
    looked_at_.reset();
    look_at_ = now;
    first_ = true;
    if (now - guarded_until_ > kRest) {
      LetGo();
      unheld_served_ = most_ = peak_ = 0;
    }
  }
  guarded_until_ = until;
}

void BulkGovernor::Look(Duration waited, uint64_t bulk_bytes, TimePoint now) {
  const std::optional<TimePoint> before = looked_at_;
  const Duration more = waited - waited_;
  const auto served = static_cast<double>(bulk_bytes - bulk_bytes_);
  looked_at_ = now;
  waited_ = waited;
  bulk_bytes_ = bulk_bytes;
  look_at_ = Acts(now) ? now + kEvery : TimePoint::Max();
  if (!Acts(now) || !before || now <= *before) return;
  const double seconds = ToSeconds(now - *before);
  const double pressure = std::clamp(ToSeconds(more) / seconds, 0.0, 1.0);
  pressure_ = std::exchange(first_, false) ? pressure : (pressure_ + pressure) / 2;
  Follow(pressure, served / seconds, now);
}

void BulkGovernor::Follow(double pressure, double served, TimePoint now) {
  if (chosen_ >= 1) return;
  peak_ = std::max(served, kPeakStays * peak_);
  if (rate_) {
    most_ = std::max(most_, served);
  } else {
    // Also while it rests: a lull in which it is held again is no measure.
    most_ = std::max(served, kPeakStays * most_);
    NoteUnheld(pressure, served);
    if (now < rests_until_ || pressure_ <= chosen_ || chosen_ >= kAny || served <= 0) return;
    // As if all of the pressure were bulk's.
    rate_ = std::max(served * chosen_ / pressure_, most_ / kDeepest);
    return;
  }
  if (chosen_ >= kAny) {
    // The same bytes in an even stream cost the class far less than in bursts.
    rate_ = std::max(std::min(*rate_ * kUp, kHeadroom * peak_), most_ / kDeepest);
    return;
  }
  const double factor = pressure_ > 0 ? std::clamp(chosen_ / pressure_, kDown, kUp) : kUp;
  rate_ = std::max(*rate_ * factor, most_ / kDeepest);
  const bool holds_nobody = factor >= 1 && *rate_ > kUnused * peak_;
  if (holds_nobody || IsFutile(now)) LetGo();
}

// By what bulk was served: while it has nothing to do there is less, and that is no measure.
void BulkGovernor::NoteUnheld(double pressure, double served) {
  unheld_served_ = kLookStays * unheld_served_ + served;
  if (unheld_served_ > 0) unheld_ += (pressure - unheld_) * served / unheld_served_;
}

void BulkGovernor::LetGo() {
  rate_.reset();
  deepest_since_.reset();
}

bool BulkGovernor::IsFutile(TimePoint now) {
  const bool deepest =
      pressure_ > std::max(chosen_, kRemains * unheld_) && *rate_ <= most_ / kDeepest;
  if (!deepest) {
    deepest_since_.reset();
    return false;
  }
  if (!deepest_since_) deepest_since_ = now;
  if (now - *deepest_since_ < kFutile) return false;
  rests_until_ = now + kRest;
  return true;
}

}  // namespace weir::osd::qos
