#include "osd/qos/device/service_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/base/prng.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

TEST(ServiceTimeTest, TheFirstEstimateHoldsUntilEnoughWasSeen) {
  ServiceTime service(0.9, 10ms);
  for (int i = 0; i < 99; ++i) service.Add(OpKind::kRead, 1ms);
  EXPECT_EQ(service.Estimate(OpKind::kRead), 10ms);
  service.Add(OpKind::kRead, 1ms);
  EXPECT_NEAR(ToSeconds(service.Estimate(OpKind::kRead)), 0.001, 0.00003);
  EXPECT_EQ(service.Mean(), 1ms);
  EXPECT_EQ(service.Estimate(OpKind::kWrite), service.Estimate(OpKind::kRead));
}

TEST(ServiceTimeTest, KindsOfOperationsAreApart) {
  ServiceTime service(0.9, 10ms);
  for (int i = 0; i < 200; ++i) {
    service.Add(OpKind::kRead, 5ms);
    service.Add(OpKind::kWrite, 1ms);
  }
  EXPECT_NEAR(ToSeconds(service.Estimate(OpKind::kRead)), 0.005, 0.0001);
  EXPECT_NEAR(ToSeconds(service.Estimate(OpKind::kWrite)), 0.001, 0.00002);
  EXPECT_EQ(service.Mean(), 3ms);
}

// Goal: the quantile that is followed bin by bin is the one that sorting gives, while old samples
// leave the window. Method: a random walk through three regimes, checked against a sort.
TEST(ServiceTimeTest, TheFollowedQuantileIsTheSortedOne) {
  constexpr size_t kWindow = 500;
  SlidingQuantile quantile(0.9, kWindow);
  Prng prng(3);
  std::vector<int64_t> samples;
  for (int i = 0; i < 5000; ++i) {
    const double mean = i < 1500 ? 8e6 : i < 3000 ? 2e5 : 3e7;
    samples.push_back(static_cast<int64_t>(prng.Exponential(mean)) + 2000);
    quantile.Add(Duration(samples.back()));
    if (i % 97 != 0) continue;
    const size_t count = std::min(samples.size(), kWindow);
    std::vector<int64_t> window(samples.end() - static_cast<std::ptrdiff_t>(count), samples.end());
    std::sort(window.begin(), window.end());
    const auto rank = static_cast<size_t>(0.9 * static_cast<double>(count) + 0.999999) - 1;
    const auto exact = static_cast<double>(window[std::min(rank, count - 1)]);
    ASSERT_NEAR(static_cast<double>(quantile.Value().count()), exact, 0.021 * exact) << i;
  }
}

TEST(ServiceTimeTest, ExtremeTimesStayInRange) {
  SlidingQuantile quantile(0.9, 10);
  quantile.Add(Duration(0));
  EXPECT_LE(quantile.Value(), 2us);
  quantile.Add(std::chrono::hours(100));
  EXPECT_GE(quantile.Value(), std::chrono::hours(1));
}

}  // namespace
}  // namespace weir::osd::qos
