#include "osd/io/rate_meter.h"

#include <algorithm>
#include <numeric>

namespace weir::osd {

void RateMeter::MoveTo(TimePoint now) {
  const int64_t slot = now.ns / kSlotNs;
  const int64_t steps = std::min(slot - newest_, kSlots);
  for (int64_t i = 0; i < steps; ++i) slots_[static_cast<size_t>((slot - i) % kSlots)] = 0;
  newest_ = std::max(newest_, slot);
}

void RateMeter::Add(uint64_t bytes, TimePoint now) {
  MoveTo(now);
  slots_[static_cast<size_t>(newest_ % kSlots)] += bytes;
}

uint64_t RateMeter::BytesPerSecond(TimePoint now) {
  MoveTo(now);
  return std::accumulate(slots_.begin(), slots_.end(), uint64_t{0}) -
         slots_[static_cast<size_t>(newest_ % kSlots)];
}

}  // namespace weir::osd
