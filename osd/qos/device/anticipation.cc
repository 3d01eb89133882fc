#include "osd/qos/device/anticipation.h"

#include <algorithm>

namespace weir::osd::qos {

void Anticipation::Switch(bool on) {
  if (on == on_) return;
  *this = Anticipation();
  on_ = on;
}

void Anticipation::Completed(ClassId id, bool others_work, TimePoint now) {
  if (!on_) return;
  if (id == holder_) left_at_ = now;
  if (!Keeps(now)) {
    const bool turn_lasts = id == holder_ && now < turn_ends_;
    if (!turn_lasts) {
      if (now < turn_ends_ + kPause) return;
      turn_ends_ = now + kTurn;
      cleared_by_ = now + kClearing;
    }
    if (id != holder_) mean_away_ = Duration(0);
    holder_ = id;
    left_at_ = now;
  }
  if (id != holder_) return;
  if (others_work && now < cleared_by_) turn_ends_ = now + kTurn;
  const Duration patience = std::clamp(5 * mean_away_, kPatience, kPatienceMax);
  kept_until_ = std::min(now + patience, turn_ends_);
}

void Anticipation::Submitted(ClassId id, TimePoint made, bool was_elsewhere) {
  if (!on_ || id != holder_) return;
  const Duration away =
      was_elsewhere ? std::clamp(made - left_at_, Duration(0), kPatienceMax) : Duration(0);
  mean_away_ += (away - mean_away_) / 16;
  kept_until_ = turn_ends_;
}

}  // namespace weir::osd::qos
