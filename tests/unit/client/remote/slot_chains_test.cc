// Goal: of each slot the newest chain counts, whoever told of it first.
#include "client/remote/slot_chains.h"

#include <gtest/gtest.h>

#include "tests/unit/client/fake_osds.h"

namespace weir::client {
namespace {

constexpr PoolId kPool{1};

Chain ChainOfOne(uint64_t version, uint32_t osd) {
  return {version, {{OsdId(osd), 0, replication::MemberState::kServing}}};
}

TEST(SlotChainsTest, TheNewestChainOfASlotCounts) {
  SlotChains chains;
  EXPECT_FALSE(chains.Of(kPool, {InodeId(7), 0}).has_value());
  EXPECT_FALSE(chains.Take(kPool, 0, ChainOfOne(2, 1))) << "there is no map yet";
  chains.SetMap(MapOf(3));
  const auto place = chains.Of(kPool, {InodeId(7), 0});
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->chain->version, 1u);
  const uint32_t slot = place->slot;
  EXPECT_EQ(place->chain->head(), OsdId(slot % 3));

  EXPECT_FALSE(chains.Take(kPool, slot, ChainOfOne(1, 2))) << "no news";
  EXPECT_FALSE(chains.Take(kPool, slot, {9, {}}));
  EXPECT_FALSE(chains.Take(kPool, 16, ChainOfOne(9, 2))) << "there is no such slot";
  EXPECT_FALSE(chains.Take(PoolId(5), slot, ChainOfOne(9, 2)));
  EXPECT_TRUE(chains.Take(kPool, slot, ChainOfOne(3, 2)));
  EXPECT_FALSE(chains.Take(kPool, slot, ChainOfOne(2, 0)));
  EXPECT_EQ(*chains.Of(kPool, {InodeId(7), 0})->chain, ChainOfOne(3, 2));

  auto map = std::make_shared<ClusterMap>(*MapOf(3, 2));
  chains.SetMap(map);
  EXPECT_EQ(*chains.Find(kPool, slot), ChainOfOne(3, 2)) << "the map is older than that";
  map = std::make_shared<ClusterMap>(*map);
  map->pools.at(kPool).chains[slot] = ChainOfOne(4, 0);
  chains.SetMap(map);
  EXPECT_EQ(*chains.Find(kPool, slot), ChainOfOne(4, 0));
  map = std::make_shared<ClusterMap>();
  chains.SetMap(map);
  EXPECT_EQ(chains.Find(kPool, slot), nullptr);
}

}  // namespace
}  // namespace weir::client
