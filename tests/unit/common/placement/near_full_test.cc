#include "common/placement/near_full.h"

#include <gtest/gtest.h>

#include "common/placement/cluster_map.h"

namespace weir {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

TEST(NearFullTest, AnEighthIsToBeFreeAnd256MibAtMost) {
  EXPECT_EQ(NearFullBelow(64 * kMiB), 8 * kMiB);
  EXPECT_EQ(NearFullBelow(2 * kGiB), 256 * kMiB);
  EXPECT_EQ(NearFullBelow(4096 * kGiB), 256 * kMiB);
}

TEST(NearFullTest, BeginsBelowThatAndEndsWithHalfAsMuchAgain) {
  const auto free = [](uint64_t bytes) { return kGiB - bytes; };
  EXPECT_FALSE(IsNearFull(kGiB, free(128 * kMiB), false));
  EXPECT_TRUE(IsNearFull(kGiB, free(128 * kMiB - 1), false));
  EXPECT_TRUE(IsNearFull(kGiB, free(192 * kMiB), true));
  EXPECT_FALSE(IsNearFull(kGiB, free(192 * kMiB + 1), true));
  EXPECT_TRUE(IsNearFull(kGiB, 2 * kGiB, false)) << "more than there is";
  EXPECT_FALSE(IsNearFull(0, 0, true)) << "nobody knows how large it is";
}

// Goal: only disks count on which new data may come to lie.
TEST(NearFullTest, CountsOsdsThatAreUpAndInAPoolWithChains) {
  ClusterMap map;
  for (uint32_t i = 0; i < 4; ++i) {
    OsdEntry& osd = map.osds[OsdId(i)];
    osd.id = OsdId(i);
    osd.up = i != 1;
    osd.capacity_bytes = kGiB;
    osd.used_bytes = kGiB;
  }
  Pool& pool = map.pools[PoolId(0)];
  pool.osds = {OsdId(0), OsdId(1)};
  map.pools[PoolId(1)].osds = {OsdId(3)};
  EXPECT_TRUE(NearFullOsds(map).empty()) << "no chains yet";
  pool.chains = ComputeChains(PoolId(0), 4, 1, {{OsdId(0), 1}, {OsdId(1), 1}});
  EXPECT_EQ(NearFullOsds(map), std::vector<OsdId>{OsdId(0)});
  EXPECT_TRUE(NearFullOsds(map, {{OsdId(0), 0}}).empty()) << "what is known later counts";
  map.near_full = true;
  EXPECT_EQ(NearFullOsds(map, {{OsdId(0), kGiB - 160 * kMiB}}), std::vector<OsdId>{OsdId(0)});
}

}  // namespace
}  // namespace weir
