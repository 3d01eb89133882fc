#include "tools/sim/oracles/tier_fairness.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "common/base/prng.h"

namespace weir::sim {
namespace {

using osd::qos::BottleneckOf;
using osd::qos::PerTier;
using osd::qos::TierClient;
using osd::qos::Tiers;

double Sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// What the client can do with so many requests per second on each tier.
double RateFrom(const PerTier& bundle, const TierClient& client, size_t tiers) {
  double rate = HUGE_VAL;
  for (size_t k = 0; k < tiers; ++k) {
    if (client.use[k] > 0) rate = std::min(rate, bundle[k] / client.use[k]);
  }
  return rate;
}

bool EnvyFree(const Tiers& tiers, std::span<const TierClient> clients,
              std::span<const double> rates, double epsilon) {
  for (size_t i = 0; i < clients.size(); ++i) {
    for (size_t j = 0; j < clients.size(); ++j) {
      PerTier bundle{};
      for (size_t k = 0; k < tiers.count; ++k) {
        bundle[k] = rates[j] * clients[j].use[k] * clients[i].weight / clients[j].weight;
      }
      if (RateFrom(bundle, clients[i], tiers.count) > rates[i] * (1 + epsilon)) return false;
    }
  }
  return true;
}

// Rule 3 of the paper: on a client's bottleneck nobody has more than it has. With two tiers that is
// the same as being free of envy; with more it is stricter, and it is what the program asks for.
bool RespectsBottlenecks(const Tiers& tiers, std::span<const TierClient> clients,
                         std::span<const double> rates, double epsilon) {
  for (size_t i = 0; i < clients.size(); ++i) {
    const size_t k = BottleneckOf(tiers, clients[i]);
    const double own = rates[i] * clients[i].use[k] / clients[i].weight;
    for (size_t j = 0; j < clients.size(); ++j) {
      if (rates[j] * clients[j].use[k] / clients[j].weight > own * (1 + epsilon)) return false;
    }
  }
  return true;
}

class Judge {
 public:
  Judge(const Tiers& tiers, std::span<const TierClient> clients, double epsilon)
      : tiers_(tiers),
        clients_(clients),
        epsilon_(epsilon),
        shares_(FairShares(tiers, clients)),
        drf_(Sum(DominantResourceRates(tiers, clients))) {}

  TierFairness Of(std::span<const double> rates) const {
    TierFairness fairness;
    PerTier first{};
    for (size_t i = 0; i < clients_.size(); ++i) {
      const double ratio = rates[i] / shares_[i];
      double& rho = first[BottleneckOf(tiers_, clients_[i])];
      if (rho == 0) rho = ratio;
      fairness.proportional &= std::abs(ratio - rho) <= epsilon_ * rho;
      fairness.sharing_incentive &= ratio >= 1 - epsilon_;
    }
    fairness.envy_free = EnvyFree(tiers_, clients_, rates, epsilon_);
    const PerTier busy = Utilisation(tiers_, clients_, rates);
    const double fullest = *std::max_element(busy.begin(), busy.end());
    fairness.within_capacity = fullest <= 1 + epsilon_;
    fairness.saturated = fullest >= 1 - epsilon_;
    fairness.at_least_drf = Sum(rates) >= drf_ * (1 - epsilon_);
    return fairness;
  }

  // Directions of the rho vector, spread over all angles and scaled until a tier is full.
  bool BeatenBySample(double total, int samples) const {
    Prng prng(1);
    std::vector<double> rates(clients_.size());
    for (int s = 0; s < samples; ++s) {
      PerTier rho{};
      for (size_t k = 0; k < tiers_.count; ++k) {
        rho[k] = std::tan(std::numbers::pi / 2 * prng.Real());
      }
      for (size_t i = 0; i < clients_.size(); ++i) {
        rates[i] = shares_[i] * rho[BottleneckOf(tiers_, clients_[i])];
      }
      const PerTier busy = Utilisation(tiers_, clients_, rates);
      const double fullest = *std::max_element(busy.begin(), busy.end());
      if (!(fullest > 0)) continue;
      for (double& rate : rates) rate /= fullest;
      if (Sum(rates) <= total * (1 + epsilon_)) continue;
      if (Of(rates).sharing_incentive && RespectsBottlenecks(tiers_, clients_, rates, epsilon_)) {
        return true;
      }
    }
    return false;
  }

 private:
  const Tiers& tiers_;
  std::span<const TierClient> clients_;
  double epsilon_;
  std::vector<double> shares_;
  double drf_;
};

}  // namespace

std::string TierFairness::Broken() const {
  std::string text;
  const auto note = [&text](bool holds, const char* name) {
    if (!holds) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  note(within_capacity, "capacity");
  note(proportional, "P1 proportional in a set");
  note(envy_free, "P2 envy-free");
  note(sharing_incentive, "P3 sharing incentive");
  note(maximal, "P4 maximal");
  note(saturated, "some tier full");
  note(at_least_drf, "at least DRF");
  return text;
}

TierFairness JudgeTierFairness(const Tiers& tiers, std::span<const TierClient> clients,
                               std::span<const double> rates, int samples, double epsilon) {
  const Judge judge(tiers, clients, epsilon);
  TierFairness fairness = judge.Of(rates);
  fairness.maximal = !judge.BeatenBySample(Sum(rates), samples);
  return fairness;
}

}  // namespace weir::sim
