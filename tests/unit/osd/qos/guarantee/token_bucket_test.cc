#include "osd/qos/guarantee/token_bucket.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;

TEST(TokenBucketTest, RefillsAtTheRateUpToTheCap) {
  TokenBucket bucket(30 * kMiB, 100'000, TimePoint{0});  // 30 MiB/s are 30,720 tokens a second
  EXPECT_EQ(bucket.level(), 100'000);
  bucket.Take(100'000);
  bucket.Refill(TimePoint{0} + 1s);
  EXPECT_EQ(bucket.level(), 30'720);
  bucket.Refill(TimePoint{0} + 1h);
  EXPECT_EQ(bucket.level(), 100'000);
}

TEST(TokenBucketTest, CoversAtIsTheFirstNanosecond) {
  Prng prng(weir::testing::TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const uint64_t rate = prng.Uniform(1, uint64_t{1} << prng.Uniform(1, 34));
    TokenBucket bucket(rate, 10'000, TimePoint{0});
    bucket.Take(static_cast<int64_t>(prng.Uniform(10'000, 30'000)));
    bucket.Refill(TimePoint{static_cast<int64_t>(prng.Uniform(0, 1'000'000))});
    const auto tokens = static_cast<int64_t>(prng.Uniform(1, 20'000));
    if (bucket.Covers(tokens)) continue;
    const TimePoint due = bucket.CoversAt(tokens);
    TokenBucket before = bucket, after = bucket;
    before.Refill(due - 1ns);
    after.Refill(due);
    ASSERT_FALSE(before.Covers(tokens)) << rate << " " << tokens;
    ASSERT_TRUE(after.Covers(tokens)) << rate << " " << tokens;
  }
}

TEST(TokenBucketTest, ARequestLargerThanTheCapIsPaidFromAFullBucketAndLeavesADebt) {
  TokenBucket bucket(1024, 10, TimePoint{0});
  EXPECT_TRUE(bucket.Covers(25));
  bucket.Take(25);
  EXPECT_EQ(bucket.level(), -15);
  EXPECT_EQ(bucket.CoversAt(25), TimePoint{0} + 25s);
  EXPECT_EQ(bucket.CoversAt(1), TimePoint{0} + 16s);
}

TEST(TokenBucketTest, ADebtHasAFloorWhichNeverRaisesALowerLevel) {
  TokenBucket bucket(1024, 10, TimePoint{0});
  bucket.TakeDownTo(-20, 1'000'000);
  EXPECT_EQ(bucket.level(), -20);
  bucket.Take(5);
  bucket.TakeDownTo(-20, 1'000'000);
  EXPECT_EQ(bucket.level(), -25);
}

TEST(TokenBucketTest, ADebtComesOffByHalvesAndLeavesNothing) {
  TokenBucket bucket(1, 100, TimePoint{0});  // a token in 17 minutes
  bucket.TakeElsewhere(-2000, 70);
  EXPECT_EQ(bucket.level(), 30);
  bucket.TakeElsewhere(-2000, 5000);
  EXPECT_EQ(bucket.level(), 0);
  bucket.Refill(TimePoint{0} + 173'287us);  // 250 ms * ln 2
  EXPECT_NEAR(static_cast<double>(bucket.level()), -1000, 1);
  bucket.TakeElsewhere(-2000, 5000);  // it owes all that it may already
  bucket.Refill(TimePoint{0} + 346'574us);
  EXPECT_NEAR(static_cast<double>(bucket.level()), -1500, 1);
  bucket.Refill(TimePoint{0} + 10s);
  EXPECT_EQ(bucket.level(), -2000);
}

TEST(TokenBucketTest, WhatComesOffInManyStepsIsWhatComesOffInOne) {
  Prng prng(weir::testing::TestSeed());
  TokenBucket often(kMiB, 1000, TimePoint{0}), once(kMiB, 1000, TimePoint{0});
  often.Take(1000), once.Take(1000);
  often.TakeElsewhere(-10'000, 700), once.TakeElsewhere(-10'000, 700);
  TimePoint now{0};
  while (now < TimePoint{0} + 500ms) {
    now += Duration(static_cast<int64_t>(prng.Uniform(1, 2'000'000)));
    often.Refill(now);
  }
  once.Refill(now);
  EXPECT_NEAR(static_cast<double>(often.level()), static_cast<double>(once.level()), 1);
}

TEST(TokenBucketTest, CoversAtIsHardlyEarlyAndNeverLateWhileSomeComesOff) {
  Prng prng(weir::testing::TestSeed());
  for (int i = 0; i < 2000; ++i) {
    TokenBucket bucket(prng.Uniform(kMiB, 200 * kMiB), 100'000, TimePoint{0});
    bucket.Take(100'000);
    bucket.TakeElsewhere(-200'000, static_cast<int64_t>(prng.Uniform(0, 60'000)));
    const auto tokens = static_cast<int64_t>(prng.Uniform(1, 4'000));
    const TimePoint first = bucket.CoversAt(tokens);
    bucket.Refill(first - 1ms);
    ASSERT_FALSE(bucket.Covers(tokens)) << i;
    int looks = 0;
    for (TimePoint due = first; !bucket.Covers(tokens); due = bucket.CoversAt(tokens)) {
      bucket.Refill(due);
      ++looks;
    }
    EXPECT_LE(looks, 12) << i;
  }
}

TEST(TokenBucketTest, UnderALowerRateADebtLastsNoLonger) {
  TokenBucket bucket(100 * kMiB, 1000, TimePoint{0});
  bucket.Take(11'000);
  bucket.TakeElsewhere(-30'000, 20'000);
  bucket.SetRate(kMiB, 1000, TimePoint{0});
  EXPECT_EQ(bucket.level(), -100);
  bucket.Refill(TimePoint{0} + 400ms);
  EXPECT_GT(bucket.level(), 100);
}

TEST(TokenBucketTest, WithoutARateNothingEverComes) {
  TokenBucket bucket(0, 10, TimePoint{0});
  bucket.Take(10);
  EXPECT_EQ(bucket.CoversAt(1), TimePoint::Max());
}

// The token arithmetic never drifts: a virtual week in random steps gives what one step gives.
TEST(TokenBucketTest, AWeekOfSmallRefillsGivesWhatOneGives) {
  Prng prng(weir::testing::TestSeed());
  constexpr int64_t kWeek = int64_t{7} * 24 * 3600 * 1'000'000'000;
  for (uint64_t rate : {uint64_t{1}, uint64_t{333}, 5 * kMiB + 7, 12'345'678'901UL}) {
    const TimePoint start{0};
    TokenBucket often(rate, int64_t{1} << 60, start), once(rate, int64_t{1} << 60, start);
    often.Take(int64_t{1} << 60);
    once.Take(int64_t{1} << 60);
    int64_t now = 0;
    while (now < kWeek) {
      now = std::min(kWeek, now + static_cast<int64_t>(prng.Uniform(1, 4'000'000'000)));
      often.Refill(TimePoint{now});
    }
    once.Refill(TimePoint{kWeek});
    EXPECT_EQ(often.level(), once.level()) << rate;
    EXPECT_EQ(once.level(), static_cast<int64_t>(rate * 7 * 24 * 3600 / 1024));
  }
}

TEST(TokenBucketTest, AbsurdRatesFillTheBucketInsteadOfOverflowing) {
  TokenBucket bucket(UINT64_MAX, 1000, TimePoint{0});
  bucket.Take(1'000'000);
  bucket.Refill(TimePoint{INT64_MAX});
  EXPECT_EQ(bucket.level(), 1000);
}

TEST(BucketCapTest, IsTwiceTheLargestRequestOrATenthOfASecond) {
  EXPECT_EQ(BucketCap(40 * kMiB, 512), 4096);
  EXPECT_EQ(BucketCap(5 * kMiB, 512), 1024);
  EXPECT_EQ(BucketCap(0, 0), 1);
}

}  // namespace
}  // namespace weir::osd::qos
