// BAA: how many requests per second each client of tiered storage gets, such that as much as
// possible is done and nobody has reason to complain (Wang and Varman, FAST'14, §3; weights and
// more than two tiers: RULES.md §6.2 to §6.4).
//
// Clients with the same bottleneck tier k form a set B_k and get A_i = rho_k * f_i: equal ratios to
// their fair shares. The rho of the sets are free, within
//
//   every tier r     sum over k of rho_k * sum over B_k of f_i * x_ir  <=  C_r             (2) (3)
//   no envy          rho_k >= rho_l * max over j in B_l of g_j * x_jk / C_k     k != l     (4)
//   sharing pays     rho_k >= 1                  nobody gets less than from a static partition
//
// and maximise sum of A_i (1). With two tiers the last line follows from the others (Lemmas 4-6);
// with three it does not, and without it every tenth random case starves somebody, so it is a
// constraint here (A31). All rho equal is feasible and is DRF, so the result is never below DRF.
//
// The program has as many variables as there are bottlenecks: O(n) to build it, then a simplex
// (simplex.h) whose size depends on the tiers only. Pure.
#pragma once

#include <optional>

#include "osd/qos/control/tier_model.h"

namespace weir::osd::qos {

struct BottleneckAllocation {
  std::vector<double> rates;   // A_i, also the weights of the scheduler
  std::vector<double> shares;  // f_i
  PerTier amplification{};     // rho_k; 0 for a tier that is nobody's bottleneck
  PerTier utilisation{};
  double total = 0;
};

// Without `sharing_incentive` the last constraint is rho_k >= 0: only to show why it is there.
// Requires: at least one client; weights and capacities > 0; fractions in [0, 1] that sum to 1.
BottleneckAllocation SolveBottleneckAware(const Tiers& tiers, std::span<const TierClient> clients,
                                          bool sharing_incentive = true);

// The bounds of eq. (4) for two tiers: alpha <= rho_0 / rho_1 <= beta; no beta if tier 1 envies
// nothing.
struct EnvyBounds {
  double alpha = 0;
  std::optional<double> beta;
};
EnvyBounds TwoTierEnvyBounds(const Tiers& tiers, std::span<const TierClient> clients);

}  // namespace weir::osd::qos
