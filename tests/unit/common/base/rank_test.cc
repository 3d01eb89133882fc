#include "common/base/rank.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace weir {
namespace {

// Goal: ranks stand in the order of their keys and give them back, whatever the kind of key.
template <typename Key>
void ExpectAscending(const std::vector<Key>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const Rank rank{Ranked<Key>::From(keys[i]), 5};
    EXPECT_EQ(Ranked<Key>::Back(rank.value), keys[i]) << i;
    EXPECT_FALSE(rank < rank) << i;
    if (i == 0) continue;
    // Of two keys the sequence says nothing.
    const Rank before{Ranked<Key>::From(keys[i - 1]), UINT64_MAX};
    EXPECT_TRUE(before < rank) << i;
    EXPECT_FALSE(rank < before) << i;
  }
}

TEST(RankTest, KeepsTheOrderOfNumbers) {
  ExpectAscending<uint64_t>({0, 1, uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX});
  ExpectAscending<int64_t>({INT64_MIN, -2, -1, 0, 1, INT64_MAX});
  ExpectAscending<TimePoint>({TimePoint{-1}, TimePoint{0}, TimePoint{1}, TimePoint::Max()});
  using Limits = std::numeric_limits<double>;
  ExpectAscending<double>({-Limits::infinity(), -1e300, -1.5, -1, -Limits::denorm_min(), 0.0,
                           Limits::denorm_min(), 1, 1.5, 1e300, Limits::infinity()});
}

TEST(RankTest, NoughtIsNought) {
  EXPECT_EQ(Ranked<double>::From(-0.0), Ranked<double>::From(0.0));
}

TEST(RankTest, EqualOnesStandInSequence) {
  EXPECT_TRUE((Rank{7, 1} < Rank{7, 2}));
  EXPECT_FALSE((Rank{7, 2} < Rank{7, 1}));
  EXPECT_FALSE((Rank{7, 2} < Rank{7, 2}));
}

}  // namespace
}  // namespace weir
