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
    heads[chain.head()] += 1.0 / kSlots;
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
    ASSERT_EQ(after[slot].head(), OsdId(3));
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
    std::set<OsdId> osds;
    for (const replication::Member& member : chain.members) osds.insert(member.osd);
    ASSERT_EQ(chain.members.size(), 3u);
    ASSERT_EQ(osds.size(), 3u);
  }
}

TEST(RendezvousTest, AChainThatChangesGetsTheNextVersionAndNoOther) {
  std::vector<Chain> chains = ComputeChains(PoolId(1), 100, 1, Osds({1, 1, 1}));
  for (const Chain& chain : chains) ASSERT_EQ(chain.version, 1u);
  chains[7].version = 40;
  chains[7].members[0].life = 5;
  const std::vector<Chain> before = chains;
  ReplaceChains(&chains, ComputeChains(PoolId(1), 100, 1, Osds({1, 1, 1, 1})));
  int changed = 0;
  for (size_t slot = 0; slot < chains.size(); ++slot) {
    if (chains[slot].head() == before[slot].head()) {
      ASSERT_EQ(chains[slot], before[slot]) << "slot " << slot;
    } else {
      ASSERT_EQ(chains[slot].version, before[slot].version + 1) << "slot " << slot;
      ++changed;
    }
  }
  EXPECT_GT(changed, 0);
  std::vector<Chain> none(3);
  ReplaceChains(&none, ComputeChains(PoolId(1), 3, 1, Osds({1})));
  for (const Chain& chain : none) EXPECT_EQ(chain.version, 1u) << "the first one that it has";
}

}  // namespace
}  // namespace weir
