#include "common/qos/delay_function.h"

#include <algorithm>

#include "common/base/check.h"

namespace weir {

double HybridFactor(double phi, double phi_min) {
  WEIR_CHECK(phi_min > 0 && phi_min <= phi && phi <= 1, "weights not normalised");
  if (phi >= 1) return 0;
  return (phi / phi_min - 1) / (1 - phi);
}

double CountedDelay(SharingKind sharing, int64_t elsewhere, int64_t cost, double hybrid_factor) {
  const auto delay = static_cast<double>(std::max<int64_t>(elsewhere, 0));
  switch (sharing) {
    case SharingKind::kSingle:
      return 0;
    case SharingKind::kTotal:
    case SharingKind::kHybridH:
      return delay;
    case SharingKind::kHybrid:
      return std::min(delay, hybrid_factor * static_cast<double>(cost));
  }
  return 0;
}

}  // namespace weir
