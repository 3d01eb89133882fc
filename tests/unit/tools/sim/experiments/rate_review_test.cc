#include "tools/sim/experiments/rate_review.h"

#include <gtest/gtest.h>

#include "osd/qos/dispatch/virtual_clock.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::FinishRate;

constexpr double kIopsMax = 630;

// Stonehenge table 1: 14 pending, 120 ms.
AdmittedClass TableOne(double iops) {
  ServiceContract contract;
  contract.iops = iops;
  contract.max_pending = 14;
  contract.bound = 120ms;
  return {contract, false};
}

ServiceMeasures Measured(double part, bool stable = true) {
  return {.service_part = [part](double) { return part; },
          .io_rate = [](double) { return 0.0; },
          .stable = stable};
}

TEST(RateReviewTest, GrantsWhatEquationElevenSays) {
  RateReview review;
  const auto rates =
      review.Review({TableOne(10), TableOne(60)}, kIopsMax, Measured(.11), TimePoint{0});
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_NEAR(rates[0], 38.91, .01);
  EXPECT_EQ(rates[1], 60) << "never below what was asked for";
}

TEST(RateReviewTest, WaitsForStableMeasurementsAndAMinute) {
  RateReview review;
  const std::vector<AdmittedClass> classes{TableOne(10)};
  EXPECT_TRUE(review.Review(classes, kIopsMax, Measured(.11, false), TimePoint{0}).empty());
  EXPECT_FALSE(review.Review(classes, kIopsMax, Measured(.11), TimePoint{0} + 1s).empty());
  EXPECT_TRUE(review.Review(classes, kIopsMax, Measured(.5), TimePoint{0} + 60s).empty());
  const auto rates = review.Review(classes, kIopsMax, Measured(.8), TimePoint{0} + 61s);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_NEAR(rates[0], 126.68, .01) << "Q + s = 1 is the worst case";
}

TEST(RateReviewTest, FinishTimesAreSpacedByWhatWasGranted) {
  ServiceContract contract = TableOne(10).contract;
  EXPECT_NEAR(FinishRate(contract, kIopsMax), 126.68, .01);
  contract.granted_iops = 38.91;
  EXPECT_NEAR(FinishRate(contract, kIopsMax), 38.91, .01);
  contract.granted_iops = 5;
  EXPECT_EQ(FinishRate(contract, kIopsMax), 10);
}

}  // namespace
}  // namespace weir::sim
