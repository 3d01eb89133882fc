#include "osd/qos/control/bandwidth_maximizer.h"

#include <gtest/gtest.h>

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBase = 40'000'000;

class BandwidthMaximizerTest : public ::testing::Test {
 protected:
  // One period in which the root holds somebody back during the first `capped` of it.
  uint64_t Period(Duration capped, bool violated) {
    maximizer_.Observe(true, now_);
    maximizer_.Observe(false, now_ + capped);
    now_ += BandwidthMaximizer::kPeriod;
    return maximizer_.Step(violated, now_);
  }
  TimePoint now_{0};
  BandwidthMaximizer maximizer_{kBase, now_};
};

TEST_F(BandwidthMaximizerTest, RaisesWhenCappedForMoreThanAFifthOfThePeriod) {
  EXPECT_EQ(Period(400ms, false), kBase);
  EXPECT_EQ(Period(401ms, false), kBase + kBase / 20);
  EXPECT_EQ(Period(0ms, false), kBase + kBase / 20);
}

TEST_F(BandwidthMaximizerTest, LowersForABrokenPromiseButNeverBelowTheBase) {
  for (int i = 0; i < 3; ++i) Period(1s, false);
  EXPECT_EQ(Period(0s, true), kBase + kBase / 20);
  EXPECT_EQ(Period(1s, true), kBase);  // capped or not
  EXPECT_EQ(Period(1s, true), kBase);
}

TEST_F(BandwidthMaximizerTest, AStateThatLastsCountsIntoEveryPeriod) {
  maximizer_.Observe(true, now_);
  EXPECT_EQ(maximizer_.Step(false, now_ + 2s), kBase + kBase / 20);
  EXPECT_EQ(maximizer_.Step(false, now_ + 4s), kBase + 2 * (kBase / 20));
}

}  // namespace
}  // namespace weir::osd::qos
