#include "osd/io/recent_latency.h"

#include <gtest/gtest.h>

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

TEST(RecentLatencyTest, ForgetsWhatIsOlderThanTenSeconds) {
  RecentLatency latency;
  TimePoint now{100'000'000'000};
  for (int i = 0; i < 100; ++i) latency.Record(10, now);
  EXPECT_EQ(latency.At(now).Quantile(0.99), 10u);
  now += 6s;
  for (int i = 0; i < 300; ++i) latency.Record(1, now);
  EXPECT_EQ(latency.At(now).Quantile(0.99), 10u) << "five seconds are kept at least";
  EXPECT_EQ(latency.At(now).Quantile(0.5), 1u);
  now += 5s;
  EXPECT_EQ(latency.At(now).Quantile(0.99), 1u);
  now += 10s;
  EXPECT_EQ(latency.At(now).count(), 0u);
}

TEST(RecentLatencyTest, APauseForgetsEverything) {
  RecentLatency latency;
  TimePoint now{0};
  latency.Record(10, now);
  now += 60s;
  latency.Record(1, now);
  EXPECT_EQ(latency.At(now).Quantile(1), 1u);
}

}  // namespace
}  // namespace weir::osd
