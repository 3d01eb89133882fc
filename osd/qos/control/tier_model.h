// Several clients, several tiers of storage that differ in speed (an HD and an SSD, or more), and
// what simple rules of sharing give each: the model of BAA (Wang and Varman, FAST'14, §2-§3.1;
// RULES.md §6.1, §6.3, §6.4) and its two baselines.
//
// A client sends a fixed fraction of its requests to each tier, so its rate on one fixes its rate
// on all. Its bottleneck is the tier that it loads most, relative to what the tier can do.
//
// Units: requests per second. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace weir::osd::qos {

inline constexpr size_t kTiersMax = 8;

using PerTier = std::array<double, kTiersMax>;

// What the tiers can do when they are always busy. Tier 0 is the slow one by custom.
struct Tiers {
  size_t count = 2;
  PerTier capacity{};  // > 0 for the first `count`
};

struct TierClient {
  double weight = 1;  // > 0; only ratios matter
  PerTier use{};      // fraction of its requests that go to each tier; sums to 1
};

// The tier that the client loads most; of equals the first.
size_t BottleneckOf(const Tiers& tiers, const TierClient& client);
// g: what the client would do alone, C_b / x_b of its bottleneck b.
double RateAlone(const Tiers& tiers, const TierClient& client);

// f_i = w_i * g_i with weights that sum to 1: what everybody gets from a static partition of every
// tier (Lemma 1).
std::vector<double> FairShares(const Tiers& tiers, std::span<const TierClient> clients);

// Plain fair queueing: rates in the ratio of the weights, as large as the tiers allow.
std::vector<double> FairQueueingRates(const Tiers& tiers, std::span<const TierClient> clients);
// Dominant resource fairness: bottleneck shares in the ratio of the weights, as large as the tiers
// allow.
std::vector<double> DominantResourceRates(const Tiers& tiers, std::span<const TierClient> clients);

// How busy each tier is at these rates, 1 being full.
PerTier Utilisation(const Tiers& tiers, std::span<const TierClient> clients,
                    std::span<const double> rates);

}  // namespace weir::osd::qos
