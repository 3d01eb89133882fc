#include "common/monitor/latency_counts.h"

#include <gtest/gtest.h>

#include "common/wire/osd.pb.h"

namespace weir::monitor {
namespace {

TEST(LatencyCountsTest, WhatWasCountedBetweenTwoLooksHasItsOwnQuantiles) {
  const LatencyCounts before{.by_largest = {{100, 1000}}, .sum_us = 90'000};
  const LatencyCounts now{.by_largest = {{100, 1000}, {7000, 99}, {9000, 1}}, .sum_us = 800'000};

  const LatencyCounts grown = now.Since(before);
  EXPECT_EQ(now.Quantile(0.5), 100u);
  EXPECT_EQ(grown.count(), 100u);
  EXPECT_EQ(grown.Quantile(0.5), 7000u);
  EXPECT_EQ(grown.Quantile(0.99), 7000u);
  EXPECT_EQ(grown.Quantile(1), 9000u);
  EXPECT_EQ(grown.sum_us, 710'000u);
  EXPECT_EQ(now.Since(now).Quantile(0.5), 0u);
}

TEST(LatencyCountsTest, CountersThatBeganAnewCountFromZero) {
  const LatencyCounts before{.by_largest = {{100, 5}}, .sum_us = 400};
  const LatencyCounts fewer{.by_largest = {{100, 3}}, .sum_us = 200};
  const LatencyCounts others{.by_largest = {{900, 3}}, .sum_us = 2000};
  const LatencyCounts faster{.by_largest = {{100, 5}}, .sum_us = 300};
  EXPECT_EQ(fewer.Since(before).count(), 3u);
  EXPECT_EQ(others.Since(before).count(), 3u);
  EXPECT_EQ(faster.Since(before).count(), 5u);
}

TEST(LatencyCountsTest, AddsUpWhatSeveralOsdsReport) {
  wire::ClassStats stats;
  stats.add_latency_ends_us(63);
  stats.add_latency_counts(2);
  stats.add_latency_ends_us(127);
  stats.add_latency_counts(1);
  stats.set_latency_sum_us(200);
  LatencyCounts all = LatenciesOf(stats);
  all.Add(LatenciesOf(stats));
  EXPECT_EQ(all.AtMost(62), 0u);
  EXPECT_EQ(all.AtMost(63), 4u);
  EXPECT_EQ(all.AtMost(10'000), 6u);
  EXPECT_EQ(all.sum_us, 400u);
}

TEST(LatencyCountsTest, AnUnevenMessageIsReadAsFarAsItGoes) {
  wire::ClassStats stats;
  stats.add_latency_ends_us(63);
  EXPECT_EQ(LatenciesOf(stats).count(), 0u);
}

}  // namespace
}  // namespace weir::monitor
