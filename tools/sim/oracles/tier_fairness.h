// The oracle of BAA (FAST'14 §3.2, properties P1-P4; RULES.md §6.5, O5): judges any division of
// tiered storage by its definition, sharing no arithmetic with the solver. For tests, the
// simulator, and whoever wants to know what a running division is worth.
//
// With weights, a client judges another's bundle scaled to its own weight. Cost: O(n^2 * tiers).
// Pure: the same question has the same answer.
#pragma once

#include <span>
#include <string>

#include "osd/qos/control/tier_model.h"

namespace weir::sim {

struct TierFairness {
  bool within_capacity = true;
  bool proportional = true;       // P1: A_i / f_i is equal among clients of one bottleneck
  bool envy_free = true;          // P2: nobody could do more with another's bundle
  bool sharing_incentive = true;  // P3: A_i >= f_i
  bool maximal = true;            // P4: no sampled division that keeps the rules does more in all
  bool saturated = true;          // some tier is full
  bool at_least_drf = true;

  [[nodiscard]] bool all() const {
    return within_capacity && proportional && envy_free && sharing_incentive && maximal &&
           saturated && at_least_drf;
  }
  [[nodiscard]] std::string Broken() const;  // names of what does not hold
};

// `samples`: how many other divisions P4 tries. `epsilon`: relative.
TierFairness JudgeTierFairness(const osd::qos::Tiers& tiers,
                               std::span<const osd::qos::TierClient> clients,
                               std::span<const double> rates, int samples = 200,
                               double epsilon = 1e-7);

}  // namespace weir::sim
