#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/placement/cluster_map.h"

namespace weir {
namespace {

std::vector<PlacementCandidate> Osds(std::vector<double> weights) {
  std::vector<PlacementCandidate> result;
  for (size_t i = 0; i < weights.size(); ++i) {
    result.push_back({OsdId(static_cast<uint32_t>(i)), weights[i]});
  }
  return result;
}

constexpr uint32_t kSlots = 20'000;

TEST(RendezvousTest, WeightsAreRespected) {
  std::map<OsdId, double> heads;
  for (const Chain& chain : ComputeChains(PoolId(1), kSlots, 1, Osds({1, 2, 5}))) {
    heads[chain.at(0)] += 1.0 / kSlots;
  }
  EXPECT_NEAR(heads[OsdId(0)], 1.0 / 8, 0.01);
  EXPECT_NEAR(heads[OsdId(1)], 2.0 / 8, 0.01);
  EXPECT_NEAR(heads[OsdId(2)], 5.0 / 8, 0.01);
}

TEST(RendezvousTest, AnOsdThatJoinsTakesItsShareAndMovesNothingElse) {
  const auto before = ComputeChains(PoolId(1), kSlots, 1, Osds({1, 1, 1}));
  const auto after = ComputeChains(PoolId(1), kSlots, 1, Osds({1, 1, 1, 1}));
  double moved = 0;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    if (before[slot] == after[slot]) continue;
    ASSERT_EQ(after[slot][0], OsdId(3));
    moved += 1.0 / kSlots;
  }
  EXPECT_NEAR(moved, 0.25, 0.01);
}

TEST(RendezvousTest, ChainsNameDistinctOsdsAndTheOrderOfCandidatesDoesNotMatter) {
  auto candidates = Osds({1, 1, 2, 3});
  const auto chains = ComputeChains(PoolId(7), 500, 3, candidates);
  std::swap(candidates[0], candidates[3]);
  EXPECT_EQ(chains, ComputeChains(PoolId(7), 500, 3, candidates));
  EXPECT_NE(chains, ComputeChains(PoolId(8), 500, 3, candidates));
  for (const Chain& chain : chains) {
    ASSERT_EQ(chain.size(), 3u);
    ASSERT_EQ(std::set<OsdId>(chain.begin(), chain.end()).size(), 3u);
  }
}

}  // namespace
}  // namespace weir
