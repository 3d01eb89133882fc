#include "osd/alloc/share_counts.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::osd {
namespace {

TEST(ShareCountsTest, AgreesWithACountPerBlock) {
  Prng prng(weir::testing::TestSeed());
  ShareCounts counts;
  std::map<uint32_t, uint32_t> model;
  for (int step = 0; step < 3000; ++step) {
    const Extent extent{static_cast<uint32_t>(prng.Uniform(0, 60)),
                        static_cast<uint32_t>(prng.Uniform(1, 20))};
    if (prng.Chance(0.5)) {
      counts.Add(extent);
      for (uint32_t i = 0; i < extent.count; ++i) ++model[extent.place + i];
    } else {
      std::vector<uint32_t> want;
      std::vector<uint32_t> got;
      for (uint32_t i = extent.place; i < extent.place + extent.count; ++i) {
        if (model[i] == 0) {
          want.push_back(i);
        } else {
          --model[i];
        }
      }
      for (const Extent& last : counts.Remove(extent)) {
        for (uint32_t i = 0; i < last.count; ++i) got.push_back(last.place + i);
      }
      ASSERT_EQ(got, want) << "step " << step;
    }
    uint64_t extra = 0;
    for (const auto& [place, count] : model) {
      extra += count;
      ASSERT_EQ(counts.IsShared(place), count > 0) << "step " << step;
    }
    ASSERT_EQ(counts.extra_blocks(), extra);
  }
}

TEST(ShareCountsTest, NeighboursWithTheSameCountAreOneEntry) {
  ShareCounts counts;
  for (uint32_t i = 0; i < 100; ++i) counts.Add({200 - i, 1});
  EXPECT_EQ(counts.runs(), 1u);
  counts.Remove({150, 10});
  EXPECT_EQ(counts.runs(), 2u);
  counts.Add({150, 10});
  EXPECT_EQ(counts.runs(), 1u);
  counts.Remove({101, 100});
  EXPECT_TRUE(counts.empty());
}

}  // namespace
}  // namespace weir::osd
