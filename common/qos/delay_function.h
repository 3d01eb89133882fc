// DelayFunction: how much of what a class got elsewhere counts at one OSD.
//
//   single   0                                    plain SFQ(D) per OSD
//   total    batchcost - cost                     DSFQ eq. (7)
//   hybrid   min{batchcost - cost, K * cost}      DSFQ eq. (11), (12): K = (phi/phi_min - 1)/(1 -
//   phi)
//   hybrid-h batchcost - cost                     the OSD cuts and remembers (osd/qos/surplus/dsfq)
//
// phi and phi_min are normalised over all registered classes (A7); with phi = 1 there is nobody to
// be fair to and K is 0. Pure.
#pragma once

#include <cstdint>

#include "common/qos/qos_config.h"

namespace weir {

// K of eq. (11). Requires: 0 < phi_min <= phi <= 1.
double HybridFactor(double phi, double phi_min);

// The delay that enters the start tag, in cost units. `elsewhere` >= 0 is eq. (7)'s delay.
double CountedDelay(SharingKind sharing, int64_t elsewhere, int64_t cost, double hybrid_factor);

}  // namespace weir
