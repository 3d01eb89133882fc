#include "osd/qos/control/bulk_governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "osd/qos/device/depth_control.h"
#include "osd/qos/throttle.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr double kMiB = 1 << 20;

// A machine whose processors are waited for as much as others are served: `base` of the time, and
// `per_mib` more for each MiB/s. The others take pieces of 64 KiB whenever they may, up to `most`.
class BulkGovernorTest : public ::testing::Test {
 protected:
  BulkGovernorTest() { governor_.Choose(0.22); }

  // MiB/s that the others were served over that time; a reader asks every millisecond.
  double Run(Duration time, bool reads = true) {
    const TimePoint begin = now_;
    uint64_t bytes = 0, this_step = 0;
    while (now_ < begin + time) {
      if (reads) guarded_until_ = now_ + DepthControl::kShortFor;
      governor_.Guarded(guarded_until_, now_);
      cap_.SetRate(governor_.rate(), now_);
      const bool guarded = now_ < guarded_until_;
      this_step = 0;
      while (static_cast<double>(this_step) < most_ * kMiB / 1000 &&
             (!guarded || cap_.PassesAt(now_) <= now_)) {
        cap_.Take(64 << 10, guarded, now_);
        this_step += 64 << 10;
      }
      bytes += this_step;
      now_ += 1ms;
      const double pressure =
          std::min(1.0, base_ + per_mib_ * static_cast<double>(this_step) * 1000 / kMiB);
      waited_ += FromSeconds(pressure * 1e-3);
      if (now_ >= governor_.LookAt()) {
        ++looks_;
        governor_.Look(waited_, cap_.taken(), now_);
      }
    }
    return static_cast<double>(bytes) / kMiB / ToSeconds(time);
  }

  // Of the moment: none while nothing is guarded.
  [[nodiscard]] uint64_t Rate() const { return now_ < guarded_until_ ? governor_.rate() : 0; }

  BulkGovernor governor_;
  BulkCap cap_;
  TimePoint guarded_until_;
  TimePoint now_{1'000'000'000};
  Duration waited_ = 1h;  // somebody waited before, too
  double base_ = 0.04, per_mib_ = 0.002, most_ = 500;
  int looks_ = 0;
};

TEST_F(BulkGovernorTest, FollowsThePressure) {
  Run(3s);
  // 0.04 + 0.002 * 90 = 0.22
  EXPECT_NEAR(Run(5s), 90, 9);
  per_mib_ = 0.001;
  Run(3s);
  EXPECT_NEAR(Run(5s), 180, 18);
  per_mib_ = 0.004;
  Run(2s);
  EXPECT_NEAR(Run(5s), 45, 5);
}

TEST_F(BulkGovernorTest, AnotherChoiceIsAnotherRate) {
  governor_.Choose(0.44);
  Run(3s);
  EXPECT_NEAR(Run(5s), 200, 20);
  governor_.Choose(1);
  EXPECT_EQ(Rate(), 0u);
  EXPECT_NEAR(Run(2s), most_, 1);
}

// By steps, and evenly: all at once would be as much as before anybody was held.
TEST_F(BulkGovernorTest, UnderAnyPressureTheyGetAllByAndByInAnEvenStream) {
  Run(8s);
  const double held = Run(1s);
  governor_.Choose(BulkGovernor::kAny);
  EXPECT_LT(Run(500ms), 2 * held);
  Run(5s);
  EXPECT_NEAR(Run(2s), most_, 1);
  EXPECT_NEAR(static_cast<double>(Rate()) / kMiB, 2 * most_, 2);
  most_ = 100;
  Run(10s);
  EXPECT_NEAR(static_cast<double>(Rate()) / kMiB, 2 * Run(100ms), 2) << "of what they take lately";
}

TEST_F(BulkGovernorTest, HoldsNobodyWhileProcessorsAreFree) {
  per_mib_ = 0.0003;
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(Run(1s), most_, 1);
    EXPECT_EQ(Rate(), 0u);
  }
}

TEST_F(BulkGovernorTest, LooksOnlyWhileTheDeviceIsGuarded) {
  EXPECT_NEAR(Run(3s, false), most_, 1);
  EXPECT_EQ(looks_, 0);
  EXPECT_EQ(governor_.LookAt(), TimePoint::Max());
  Run(2s);
  EXPECT_NEAR(looks_, 20, 2);
  EXPECT_GT(Rate(), 0u);
  Run(DepthControl::kShortFor + 200ms, false);
  EXPECT_EQ(Rate(), 0u) << "the reader has gone";
  EXPECT_EQ(governor_.LookAt(), TimePoint::Max());
  looks_ = 0;
  EXPECT_NEAR(Run(3s, false), most_, 1);
  EXPECT_EQ(looks_, 0);
}

// A tenth of a second of everything would be many late requests.
TEST_F(BulkGovernorTest, BeginsWithThePartThatTheChoiceIsOfThePressure) {
  Run(300ms);
  EXPECT_LT(Run(100ms), 0.4 * most_);
  EXPECT_LT(Run(100ms), 0.3 * most_);
}

// The choice is out of reach, as others have the processors for longer than that; yet whom bulk
// would keep waiting gains by it.
TEST_F(BulkGovernorTest, HoldsAsLongAsThatHelps) {
  base_ = 0.3;
  Run(3s);
  for (int i = 0; i < 15; ++i) EXPECT_LT(Run(1s), 0.1 * most_) << i;
  EXPECT_FALSE(governor_.Rests(now_));
}

// The pressure of others, which is not relieved: bulk rests, and is held again at the end of that.
TEST_F(BulkGovernorTest, ALullAsItIsHeldAgainDoesNotSayWhatTheyHad) {
  per_mib_ = 0;
  base_ = 0.9;
  while (!governor_.Rests(now_)) Run(100ms);
  Run(BulkGovernor::kRest - 200ms);
  ASSERT_TRUE(governor_.Rests(now_));
  const double all = std::exchange(most_, 1.0);
  Run(400ms);
  ASSERT_FALSE(governor_.Rests(now_));
  ASSERT_GT(Rate(), 0u);
  EXPECT_GT(static_cast<double>(Rate()) / kMiB, all / BulkGovernor::kDeepest / 2);
}

// Goal: one peak before bulk is held does not make all that remains look like a gain, for ever.
TEST_F(BulkGovernorTest, OnePeakIsNotWhatThereIsWithoutHolding) {
  per_mib_ = 0;
  base_ = 0.6;
  while (!governor_.Rests(now_)) Run(100ms);
  Run(BulkGovernor::kRest - 200ms);
  base_ = 1;
  while (Rate() == 0) Run(100ms);
  base_ = 0.6;
  Run(5s);
  EXPECT_TRUE(governor_.Rests(now_));
}

// Goal: nor does a lull of bulk, in which there is little, make what remains look like all.
TEST_F(BulkGovernorTest, ALullIsNotWhatThereIsWithoutHolding) {
  per_mib_ = 0;
  base_ = 0.9;
  while (!governor_.Rests(now_)) Run(100ms);
  per_mib_ = 0.002;
  base_ = 0.3;
  Run(BulkGovernor::kRest - 1500ms);
  most_ = 0;
  Run(1600ms);
  ASSERT_FALSE(governor_.Rests(now_));
  ASSERT_EQ(Rate(), 0u);
  while (now_ < governor_.LookAt() - 20ms) Run(1ms);
  most_ = 500;
  Run(10s);
  EXPECT_GT(Rate(), 0u);
  EXPECT_FALSE(governor_.Rests(now_)) << "of 1.0 it leaves 0.36";
}

TEST_F(BulkGovernorTest, PressureBeforeTheDeviceWasGuardedHoldsNobody) {
  base_ = 0.9;
  Run(1s);
  Run(DepthControl::kShortFor + 20s, false);
  base_ = 0.04;
  per_mib_ = 0.0003;
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(Run(100ms), most_, 1);
    EXPECT_EQ(Rate(), 0u);
  }
}

// Pressure of long ago is no measure of whether that helps.
TEST_F(BulkGovernorTest, WhatOthersTakeNowIsComparedWithWhatTheyTookLately) {
  per_mib_ = 0;
  most_ = 0;  // bulk has nothing to do
  base_ = 0.9;
  Run(3s);
  base_ = 0.05;
  Run(5s);
  base_ = 0.5;
  most_ = 500;
  Run(5s);
  EXPECT_TRUE(governor_.Rests(now_));
}

// What somebody waited for while nobody looked says nothing of now.
TEST_F(BulkGovernorTest, ItBeginsAnewWithoutThePast) {
  per_mib_ = 0.0003;
  Run(1s);
  per_mib_ = 0.002;
  Run(20s, false);
  per_mib_ = 0.0003;
  EXPECT_NEAR(Run(1s), most_, 1);
}

TEST_F(BulkGovernorTest, LetsGoWhenTheOthersAskForLess) {
  Run(3s);
  ASSERT_GT(Rate(), 0u);
  most_ = 10;
  Run(3s);
  EXPECT_EQ(Rate(), 0u);
}

// Goal: the work of programs that have nothing to do with WeirFS costs its writers a sixth of
// their time and not nearly all of it.
TEST_F(BulkGovernorTest, ThePressureOfOthersIsNotOursToRelieve) {
  per_mib_ = 0;
  base_ = 0.9;
  const double mean = Run(48s);
  EXPECT_GT(mean, 0.7 * most_);
  EXPECT_LT(mean, 0.95 * most_) << "it did not even try";
}

TEST_F(BulkGovernorTest, NobodyIsHeldBelowHisLeast) {
  base_ = 0.9;
  per_mib_ = 0.0001;
  Run(1500ms);
  double least = most_;
  for (int i = 0; i < 40; ++i) least = std::min(least, Run(100ms));
  EXPECT_GT(least, 0.8 * most_ / BulkGovernor::kDeepest);
}

}  // namespace
}  // namespace weir::osd::qos
