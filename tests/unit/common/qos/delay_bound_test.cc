#include "common/qos/delay_bound.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(DelayBoundTest, TableOnesLatencyNeeds126RequestsPerSecond) {
  EXPECT_NEAR(*IopsForDelay(14, 630, 120ms), 126.676, 0.001);
  EXPECT_NEAR(DelayBound(14, 126.676, 630), 0.120, 1e-6);
}

TEST(DelayBoundTest, MeasuredSlackLowersTheRate) {
  EXPECT_NEAR(*IopsForDelay(14, 630, 120ms, 0.11 + 0.2), 38.910, 0.001);
  EXPECT_NEAR(DelayBound(14, 38.910, 630, 0.31), 0.120, 1e-5);
}

TEST(DelayBoundTest, NoRateKeepsABoundShorterThanOneService) {
  EXPECT_FALSE(IopsForDelay(14, 100, 10ms).has_value());
  EXPECT_TRUE(IopsForDelay(14, 100, 10001us).has_value());
  EXPECT_TRUE(IopsForDelay(14, 100, 10ms, 0.5).has_value());
}

TEST(DelayBoundTest, TheByteFormTurnsIntoTheRequestFormForSmallRequests) {
  // Sizes to 0 and an overhead of 1/IOPSmax: a rate of B bytes/s is B / (T/IOPSmax) requests/s.
  const DiskFigures disk{.iops_max = 630, .bytes_per_s = 37e6, .overhead_seconds = 1.0 / 630};
  const RequestFigures tiny{.max_pending = 14, .average_bytes = 0, .largest_bytes = 0};
  const double rate = *RateForDelay(tiny, disk, 120ms);
  EXPECT_NEAR(rate / (disk.overhead_seconds * disk.bytes_per_s), 126.676, 0.001);
  EXPECT_NEAR(ByteDelayBound(tiny, disk, rate), 0.120, 1e-9);
}

TEST(DelayBoundTest, WithoutOverheadTheByteFormIsTheNetworks) {
  const DiskFigures link{.iops_max = 1, .bytes_per_s = 1e6, .overhead_seconds = 0};
  const RequestFigures requests{.max_pending = 3, .average_bytes = 1000, .largest_bytes = 2000};
  EXPECT_NEAR(ByteDelayBound(requests, link, 1e5), NetworkDelayBound(3000, 2000, 1e5, 1e6), 1e-12);
  EXPECT_NEAR(ByteDelayBound(requests, link, *RateForDelay(requests, link, 100ms)), 0.1, 1e-12);
  EXPECT_FALSE(RateForDelay(requests, link, 2ms).has_value());
}

TEST(DelayBoundTest, OverheadCountsLikeBytes) {
  const DiskFigures disk{.iops_max = 1, .bytes_per_s = 37e6, .overhead_seconds = 0.008};
  EXPECT_DOUBLE_EQ(EffectiveBytes(4096, disk), 4096 + 296000);
}

}  // namespace
}  // namespace weir
