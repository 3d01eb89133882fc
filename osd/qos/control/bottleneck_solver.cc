#include "osd/qos/control/bottleneck_solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "osd/qos/control/simplex.h"

namespace weir::osd::qos {
namespace {

// What the program needs to know of all clients, per bottleneck set.
struct Sets {
  PerTier share{};                         // sum over B_k of f_i
  std::array<PerTier, kTiersMax> load{};   // [k][r]: sum over B_k of f_i * x_ir
  std::array<PerTier, kTiersMax> wants{};  // [l][k]: max over B_l of g_j * x_jk / C_k, <= 1
  std::array<bool, kTiersMax> used{};
};

Sets Classify(const Tiers& tiers, std::span<const TierClient> clients,
              std::span<const double> shares) {
  Sets sets;
  for (size_t i = 0; i < clients.size(); ++i) {
    const TierClient& client = clients[i];
    const size_t k = BottleneckOf(tiers, client);
    const double alone = tiers.capacity[k] / client.use[k];
    sets.used[k] = true;
    sets.share[k] += shares[i];
    for (size_t r = 0; r < tiers.count; ++r) {
      sets.load[k][r] += shares[i] * client.use[r];
      sets.wants[k][r] = std::max(sets.wants[k][r], alone * client.use[r] / tiers.capacity[r]);
    }
  }
  return sets;
}

// coefficients . rho <= bound, in x = rho - least, scaled so that the largest coefficient is 1; a
// row without coefficients says nothing. All rho equal to `least` is feasible, so x = 0 is; but for
// rounding.
void AddRow(std::vector<double> coefficients, double bound, double least,
            std::vector<SimplexRow>* rows) {
  double largest = 0;
  for (const double c : coefficients) largest = std::max(largest, std::abs(c));
  if (largest <= 0) return;
  bound /= largest;
  for (double& c : coefficients) {
    c /= largest;
    bound -= c * least;
  }
  rows->push_back({std::move(coefficients), std::max(bound, 0.0)});
}

// Variable v stands for the rho of tier_of[v].
std::vector<SimplexRow> Build(const Tiers& tiers, const Sets& sets,
                              const std::vector<size_t>& tier_of, double least) {
  std::vector<SimplexRow> rows;
  for (size_t r = 0; r < tiers.count; ++r) {
    std::vector<double> load(tier_of.size());
    for (size_t v = 0; v < load.size(); ++v) load[v] = sets.load[tier_of[v]][r];
    AddRow(std::move(load), tiers.capacity[r], least, &rows);
  }
  for (size_t v = 0; v < tier_of.size(); ++v) {
    for (size_t u = 0; u < tier_of.size(); ++u) {
      const double wants = sets.wants[tier_of[u]][tier_of[v]];
      if (u == v || wants <= 0) continue;
      std::vector<double> envy(tier_of.size());
      envy[v] = -1;
      envy[u] = wants;
      AddRow(std::move(envy), 0, least, &rows);
    }
  }
  return rows;
}

}  // namespace

BottleneckAllocation SolveBottleneckAware(const Tiers& tiers, std::span<const TierClient> clients,
                                          bool sharing_incentive) {
  BottleneckAllocation result;
  result.shares = FairShares(tiers, clients);
  const Sets sets = Classify(tiers, clients, result.shares);
  std::vector<size_t> tier_of;
  std::vector<double> objective;
  for (size_t k = 0; k < tiers.count; ++k) {
    if (!sets.used[k]) continue;
    tier_of.push_back(k);
    objective.push_back(sets.share[k]);
  }
  const double least = sharing_incentive ? 1 : 0;
  const auto best = SolveSimplex(objective, Build(tiers, sets, tier_of, least));
  WEIR_CHECK(best.has_value(), "capacities bound the program of bottleneck-aware allocation");
  for (size_t v = 0; v < tier_of.size(); ++v) result.amplification[tier_of[v]] = least + (*best)[v];

  result.rates.reserve(clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    const double rho = result.amplification[BottleneckOf(tiers, clients[i])];
    result.rates.push_back(rho * result.shares[i]);
    result.total += result.rates.back();
  }
  result.utilisation = Utilisation(tiers, clients, result.rates);
  return result;
}

EnvyBounds TwoTierEnvyBounds(const Tiers& tiers, std::span<const TierClient> clients) {
  const Sets sets = Classify(tiers, clients, FairShares(tiers, clients));
  EnvyBounds bounds;
  if (!sets.used[0] || !sets.used[1]) return bounds;
  bounds.alpha = sets.wants[1][0];
  if (sets.wants[0][1] > 0) bounds.beta = 1 / sets.wants[0][1];
  return bounds;
}

}  // namespace weir::osd::qos
