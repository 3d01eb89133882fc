#include "osd/qos/control/bandwidth_maximizer.h"

#include <algorithm>

namespace weir::osd::qos {

BandwidthMaximizer::BandwidthMaximizer(uint64_t base_rate, TimePoint now)
    : base_rate_(base_rate), rate_(base_rate), period_start_(now), observed_(now) {}

void BandwidthMaximizer::Observe(bool capped, TimePoint now) {
  if (capped_) capped_time_ += now - observed_;
  capped_ = capped;
  observed_ = now;
}

uint64_t BandwidthMaximizer::Step(bool violated, TimePoint now) {
  Observe(capped_, now);
  const bool capped = 5 * capped_time_ > now - period_start_;
  if (capped && !violated) {
    rate_ += base_rate_ / 20;
  } else if (violated && rate_ > base_rate_) {
    rate_ = std::max(base_rate_, rate_ - base_rate_ / 10);
  }
  period_start_ = now;
  capped_time_ = Duration(0);
  return rate_;
}

}  // namespace weir::osd::qos
