#include "osd/qos/control/tier_model.h"

#include <algorithm>
#include <limits>

namespace weir::osd::qos {
namespace {

double SumOfWeights(std::span<const TierClient> clients) {
  double sum = 0;
  for (const TierClient& client : clients) sum += client.weight;
  return sum;
}

// The largest multiple of these rates that no tier refuses.
std::vector<double> ScaledToCapacity(const Tiers& tiers, std::span<const TierClient> clients,
                                     std::vector<double> rates) {
  const PerTier busy = Utilisation(tiers, clients, rates);
  const double fullest = *std::max_element(busy.begin(), busy.end());
  if (fullest <= 0) return rates;
  for (double& rate : rates) rate /= fullest;
  return rates;
}

}  // namespace

size_t BottleneckOf(const Tiers& tiers, const TierClient& client) {
  size_t most = 0;
  for (size_t k = 1; k < tiers.count; ++k) {
    // x_k / C_k > x_most / C_most, without divisions that would round equals apart.
    if (client.use[k] * tiers.capacity[most] > client.use[most] * tiers.capacity[k]) most = k;
  }
  return most;
}

double RateAlone(const Tiers& tiers, const TierClient& client) {
  const size_t most = BottleneckOf(tiers, client);
  return tiers.capacity[most] / client.use[most];
}

std::vector<double> FairShares(const Tiers& tiers, std::span<const TierClient> clients) {
  const double total = SumOfWeights(clients);
  std::vector<double> shares;
  shares.reserve(clients.size());
  for (const TierClient& client : clients) {
    shares.push_back(client.weight / total * RateAlone(tiers, client));
  }
  return shares;
}

std::vector<double> FairQueueingRates(const Tiers& tiers, std::span<const TierClient> clients) {
  std::vector<double> rates;
  rates.reserve(clients.size());
  for (const TierClient& client : clients) rates.push_back(client.weight);
  return ScaledToCapacity(tiers, clients, std::move(rates));
}

std::vector<double> DominantResourceRates(const Tiers& tiers, std::span<const TierClient> clients) {
  return ScaledToCapacity(tiers, clients, FairShares(tiers, clients));
}

PerTier Utilisation(const Tiers& tiers, std::span<const TierClient> clients,
                    std::span<const double> rates) {
  PerTier busy{};
  for (size_t i = 0; i < clients.size(); ++i) {
    for (size_t k = 0; k < tiers.count; ++k) busy[k] += rates[i] * clients[i].use[k];
  }
  for (size_t k = 0; k < tiers.count; ++k) busy[k] /= tiers.capacity[k];
  return busy;
}

}  // namespace weir::osd::qos
