#include "osd/qos/control/bound_setpoint.h"

#include <gtest/gtest.h>

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kReader{16}, kOther{17};
constexpr double kLeast = 0.2;

ServiceContract Contract(Duration bound, double probability = 0.99) {
  ServiceContract contract;
  contract.bound = bound;
  contract.probability = probability;
  return contract;
}

class BoundSetpointTest : public ::testing::Test {
 protected:
  BoundSetpointTest() { setpoint_.SetLeast(kLeast); }

  // One sample a millisecond.
  void Wait(ClassId id, const ServiceContract& contract, Duration waited, int samples,
            bool held = true) {
    for (int i = 0; i < samples; ++i) {
      now_ += 1ms;
      setpoint_.Waited(id, contract, waited, held, now_);
    }
  }
  void Relax() {
    Wait(kReader, Contract(32ms), 100us, 40000);
    ASSERT_EQ(setpoint_.pressure(), BoundSetpoint::kMost);
  }

  BoundSetpoint setpoint_;
  TimePoint now_{10'000'000'000};
};

// 32 ms leave a millisecond: what is less grows the pressure, by 5 % a window at most.
TEST_F(BoundSetpointTest, SlackIsGivenToOthersBySmallSteps) {
  Wait(kReader, Contract(32ms), 100us, 301);
  EXPECT_DOUBLE_EQ(setpoint_.pressure(), kLeast * 1.05);
  Wait(kReader, Contract(32ms), 990us, 300);
  EXPECT_NEAR(setpoint_.pressure(), kLeast * 1.05 / 0.99, 1e-9);
  Wait(kReader, Contract(32ms), 100us, 60 * 300);
  EXPECT_EQ(setpoint_.pressure(), BoundSetpoint::kMost);
}

TEST_F(BoundSetpointTest, ATightBoundKeepsTheLeastThatTheOperatorChose) {
  Wait(kReader, Contract(2ms), 200us, 3000);
  EXPECT_EQ(setpoint_.pressure(), kLeast);
}

TEST_F(BoundSetpointTest, IsTightenedAsSoonAsAWindowIsLost) {
  Relax();
  Wait(kReader, Contract(32ms), 2ms, 101);  // 4 of 300 decide, 100 ms at the least
  EXPECT_DOUBLE_EQ(setpoint_.pressure(), BoundSetpoint::kMost * 0.7);
  Wait(kReader, Contract(32ms), 1250us, 290);
  EXPECT_DOUBLE_EQ(setpoint_.pressure(), BoundSetpoint::kMost * 0.7) << "it was not seen yet";
  Wait(kReader, Contract(32ms), 1250us, 101);
  EXPECT_NEAR(setpoint_.pressure(), BoundSetpoint::kMost * 0.7 * 0.8, 1e-9);
  Wait(kReader, Contract(32ms), 33ms, 101);
  EXPECT_EQ(setpoint_.pressure(), kLeast) << "the bound is broken";
  Wait(kReader, Contract(32ms), 100us, 1900);
  EXPECT_EQ(setpoint_.pressure(), kLeast) << "late ones come in bursts";
  Wait(kReader, Contract(32ms), 100us, 600);
  EXPECT_GT(setpoint_.pressure(), kLeast);
}

// One in a hundred may be late, and one of a few is not the 99th percentile's business.
TEST_F(BoundSetpointTest, MeasuresTheQuantileOfTheContract) {
  Relax();
  for (int i = 0; i < 100; ++i) {
    Wait(kReader, Contract(32ms), 100us, 99);
    Wait(kReader, Contract(32ms), 10ms, 1);
  }
  EXPECT_EQ(setpoint_.pressure(), BoundSetpoint::kMost);
  EXPECT_EQ(setpoint_.Of(kReader, now_).quantile, 100us);
  EXPECT_EQ(setpoint_.Of(kReader, now_).target, 1ms);
  for (int i = 0; i < 100; ++i) {
    Wait(kReader, Contract(32ms, 0.999), 100us, 99);
    Wait(kReader, Contract(32ms, 0.999), 10ms, 1);
  }
  EXPECT_EQ(setpoint_.Of(kReader, now_).quantile, 10ms);
  EXPECT_LT(setpoint_.pressure(), 0.3);
}

// Of 100 requests the 99th percentile would be the second longest.
TEST_F(BoundSetpointTest, WhoAsksLittleIsMeasuredWhenThereIsEnough) {
  for (int i = 0; i < 199; ++i) {
    now_ += 99ms;
    Wait(kReader, Contract(32ms), 100us, 1);
  }
  EXPECT_EQ(setpoint_.pressure(), kLeast);
  Wait(kReader, Contract(32ms), 100us, 1);
  EXPECT_DOUBLE_EQ(setpoint_.pressure(), kLeast * 1.05);
}

// A few that the contract allows are not a broken bound.
TEST_F(BoundSetpointTest, TheBoundIsBrokenByMoreThanMayBreakIt) {
  Relax();
  Wait(kReader, Contract(32ms), 33ms, 2);
  Wait(kReader, Contract(32ms), 2ms, 101);
  EXPECT_DOUBLE_EQ(setpoint_.pressure(), BoundSetpoint::kMost * 0.7);
}

TEST_F(BoundSetpointTest, NothingGrowsWhileNobodyIsHeldBack) {
  Wait(kReader, Contract(32ms), 100us, 30000, false);
  EXPECT_EQ(setpoint_.pressure(), kLeast);
}

TEST_F(BoundSetpointTest, TheClassThatMissesMostDecides) {
  Relax();
  for (int i = 0; i < 2000; ++i) {
    Wait(kReader, Contract(32ms), 2ms, 1);
    Wait(kOther, Contract(4s), 2ms, 1);
  }
  EXPECT_EQ(setpoint_.pressure(), kLeast);
}

TEST_F(BoundSetpointTest, WhoIsForgottenHasNoSay) {
  Wait(kOther, Contract(2ms), 1ms, 400);
  setpoint_.Forget(kOther);
  Wait(kReader, Contract(32ms), 100us, 3000);  // sooner than a silent one has none
  EXPECT_GT(setpoint_.pressure(), kLeast);
  EXPECT_EQ(setpoint_.Of(kOther, now_).target, 0ns);
}

TEST_F(BoundSetpointTest, WhoIsSilentHasNoSayAndIsNotShown) {
  Wait(kOther, Contract(2ms), 1ms, 400);
  EXPECT_EQ(setpoint_.Of(kOther, now_).quantile, 1ms);
  Wait(kReader, Contract(32ms), 100us, 4500);
  EXPECT_EQ(setpoint_.pressure(), kLeast);
  Relax();
  EXPECT_EQ(setpoint_.Of(kOther, now_).quantile, 0ns);
}

// It was found without the class that speaks again, however little it asks.
TEST_F(BoundSetpointTest, WhoBeginsToSpeakBeginsAtTheLeast) {
  Relax();
  Wait(kOther, Contract(2ms), 100us, 1);
  EXPECT_EQ(setpoint_.pressure(), kLeast);
  Relax();
  now_ += 100ms;
  Wait(kOther, Contract(2ms), 100us, 1);
  EXPECT_EQ(setpoint_.pressure(), kLeast) << "after a silence";
}

TEST_F(BoundSetpointTest, SeveralClassesDoNotRaiseItSooner) {
  for (int i = 0; i < 3000; ++i) {
    for (uint32_t id = 16; id < 32; ++id) {
      setpoint_.Waited(ClassId(id), Contract(32ms), 100us, true, now_);
    }
    now_ += 1ms;
  }
  const double many = setpoint_.pressure();
  setpoint_ = {};
  setpoint_.SetLeast(kLeast);
  Wait(kReader, Contract(32ms), 100us, 3000);
  EXPECT_NEAR(many, setpoint_.pressure(), 0.06 * many);
}

TEST_F(BoundSetpointTest, AnotherBoundIsMeasuredAnew) {
  Wait(kReader, Contract(2ms), 1ms, 400);
  Wait(kReader, Contract(320ms), 1ms, 299);
  EXPECT_EQ(setpoint_.Of(kReader, now_).quantile, 0ns);
  EXPECT_EQ(setpoint_.Of(kReader, now_).target, 10ms);
}

}  // namespace
}  // namespace weir::osd::qos
