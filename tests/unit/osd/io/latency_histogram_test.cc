#include "osd/io/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/base/prng.h"
#include "osd/io/rate_meter.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistogramTest, SmallValuesAreExactAndEmptyIsZero) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.99), 0u);
  for (uint64_t value = 1; value <= 10; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Quantile(0.5), 5u);
  EXPECT_EQ(histogram.Quantile(1.0), 10u);
  histogram.Reset();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
}

TEST(LatencyHistogramTest, QuantilesAreNeverTooLowAndAtMostASixteenthTooHigh) {
  Prng prng(7);
  LatencyHistogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = prng.Next() >> prng.Uniform(34, 63);
    values.push_back(value);
    histogram.Record(value);
  }
  std::sort(values.begin(), values.end());
  for (double fraction : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(fraction * 20000)) - 1;
    const uint64_t exact = values[rank];
    EXPECT_GE(histogram.Quantile(fraction), exact) << fraction;
    EXPECT_LE(histogram.Quantile(fraction), exact + exact / 16) << fraction;
  }
}

TEST(LatencyHistogramTest, AbsurdValuesCountAsTheLargest) {
  LatencyHistogram histogram;
  histogram.Record(UINT64_MAX);
  EXPECT_EQ(histogram.Quantile(0.5), (uint64_t{1} << 32) - 1);
}

TEST(RateMeterTest, ShowsTheLastFullSecondOnly) {
  RateMeter meter;
  TimePoint now{5'000'000'000};
  EXPECT_EQ(meter.BytesPerSecond(now), 0u);
  for (int i = 0; i < 30; ++i) {
    meter.Add(100, now);
    now += 100ms;
  }
  EXPECT_EQ(meter.BytesPerSecond(now), 1000u);
  EXPECT_EQ(meter.BytesPerSecond(now + 500ms), 500u);
  EXPECT_EQ(meter.BytesPerSecond(now + 1h), 0u);
  meter.Add(7, now + 1h);
  EXPECT_EQ(meter.BytesPerSecond(now + 1h), 0u) << "the running slot does not count yet";
  EXPECT_EQ(meter.BytesPerSecond(now + 1h + 100ms), 7u);
}

}  // namespace
}  // namespace weir::osd
