#include "osd/qos/device/bursts.h"

#include <algorithm>

namespace weir::osd::qos {

void Bursts::ReadSubmitted(TimePoint now) {
  if (!Acts(now) || (under_way_ == 0 && reads_ >= kReads)) given_ = 0;
  ++reading_;
  reader_until_ = TimePoint::Max();
}

void Bursts::ReadDone(TimePoint now) {
  if (--reading_ == 0) reader_until_ = now + kPatience;
  if (under_way_ == 0) ++reads_;
}

bool Bursts::Submitted(uint64_t bytes, TimePoint now) {
  if (!Acts(now) || Keeps(now)) return false;
  if (given_ >= kBytes) given_ = 0;
  given_ += bytes;
  ++under_way_;
  if (given_ >= kBytes) pause_ends_ = now + kPauseMax;
  return true;
}

TimePoint Bursts::KeptUntil() const {
  if (given_ < kBytes) return TimePoint();
  return std::min(reader_until_, pause_ends_);
}

}  // namespace weir::osd::qos
