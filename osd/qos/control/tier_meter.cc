#include "osd/qos/control/tier_meter.h"

#include <algorithm>
#include <vector>

namespace weir::osd::qos {

void TierMeter::Observe(const TierActivity& activity, Duration stretch) {
  busy_ = std::min(1.0, ToSeconds(activity.busy) / ToSeconds(stretch));
  const double rate = static_cast<double>(activity.completed) / ToSeconds(stretch);
  spare_rate_ = busy_ < kBusy ? rate : 0;
  if (busy_ < kBusy) {
    at_least_ = std::max(at_least_, kMore * rate);
    return;
  }
  rates_[next_] = rate;
  next_ = (next_ + 1) % kSamples;
  known_ = std::min(known_ + 1, kSamples);
}

double TierMeter::Capacity() const {
  if (known_ < kSamplesMin) return 0;
  std::vector<double> sorted(rates_.begin(), rates_.begin() + static_cast<std::ptrdiff_t>(known_));
  const size_t rank = (known_ - 1) * 95 / 100;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank),
                   sorted.end());
  return std::max(sorted[rank], spare_rate_);
}

}  // namespace weir::osd::qos
