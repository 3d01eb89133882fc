#include "osd/qos/control/anticipation.h"

#include <algorithm>

namespace weir::osd::qos {

void Anticipation::Switch(bool on) {
  if (on == on_) return;
  *this = Anticipation();
  on_ = on;
}

void Anticipation::Completed(ClassId id, bool others_work, TimePoint now) {
  if (!on_) return;
  if (!Keeps(now)) {
    const bool turn_lasts = id == holder_ && now < turn_ends_;
    if (!turn_lasts) {
      if (now < turn_ends_ + kPause) return;
      turn_ends_ = now + kTurn;
      cleared_by_ = now + kClearing;
    }
    holder_ = id;
  }
  if (id != holder_) return;
  if (others_work && now < cleared_by_) turn_ends_ = now + kTurn;
  kept_until_ = std::min(now + kPatience, turn_ends_);
}

void Anticipation::Submitted(ClassId id) {
  if (on_ && id == holder_) kept_until_ = turn_ends_;
}

}  // namespace weir::osd::qos
