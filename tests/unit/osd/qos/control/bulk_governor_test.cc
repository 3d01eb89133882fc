#include "osd/qos/control/bulk_governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/base/prng.h"
#include "osd/qos/throttle.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr double kMiB = 1 << 20;
constexpr ClassId kReader{16}, kOther{17};

// A machine on whose way a reader and others queue: alone a request takes `base_` and an
// exponential tail, and the more of `can_` the others use, the longer both get. The others take
// pieces of 64 KiB whenever they may, up to `most_`.
class BulkGovernorTest : public ::testing::Test {
 protected:
  static ServiceContract Contract(Duration bound, double part = 0.99) {
    return {.bound = bound, .probability = part, .max_pending = 0};
  }

  // MiB/s that the others were served over that time; each reader asks `reads_` times a
  // millisecond.
  double Run(Duration time, bool with_bulk = true) {
    const TimePoint begin = now_;
    uint64_t bytes = 0;
    waits_.clear();
    while (now_ < begin + time) {
      cap_.SetRate(governor_.rate(), now_);
      uint64_t step = 0;
      while (with_bulk && static_cast<double>(step) < most_ * kMiB / 1000 &&
             (!guarded_ || cap_.PassesAt(now_) <= now_)) {
        cap_.Take(64 << 10, guarded_, now_);
        step += 64 << 10;
      }
      bytes += step;
      use_ += (static_cast<double>(step) * 1000 / kMiB / can_ - use_) / 16;
      now_ += 1ms;
      for (int i = 0; i < reads_; ++i) Read();
      for (int i = 0; has_second_ && i < 10; ++i) {
        governor_.Waited(kOther, Contract(1s), 1ms, {.bytes = cap_.taken(), .guarded = guarded_},
                         now_);
      }
    }
    return static_cast<double>(bytes) / kMiB / ToSeconds(time);
  }
  void Read() {
    const double load = std::min(0.98, others_ + bulk_matters_ * use_);
    const double tail = -std::log(1 - prng_.Uniform(0, 999'999) / 1e6);
    const double ns = 1e3 * base_us_ * (0.7 + 0.07 * tail) / (1 - load);
    const Duration waited(static_cast<int64_t>(ns));
    waits_.push_back(waited);
    governor_.Waited(kReader, contract_, waited, {.bytes = cap_.taken(), .guarded = guarded_},
                     now_);
  }
  // Of the last run, in microseconds.
  double P99() {
    std::sort(waits_.begin(), waits_.end());
    return static_cast<double>(waits_[waits_.size() * 99 / 100].count()) / 1e3;
  }

  BulkGovernor governor_;
  BulkCap cap_;
  TimePoint now_{1'000'000'000};
  Prng prng_{7};
  ServiceContract contract_ = Contract(2ms);
  double base_us_ = 200, can_ = 500, most_ = 480, others_ = 0, bulk_matters_ = 1;
  double use_ = 0;
  int reads_ = 3;
  bool guarded_ = true, has_second_ = false;
  std::vector<Duration> waits_;
};

TEST_F(BulkGovernorTest, ALooserBoundCostsBulkLess) {
  double before = 0;
  for (const Duration bound : {2ms, 10ms, 20ms, 40ms}) {
    governor_ = {};
    contract_ = Contract(bound);
    Run(2s, false);
    const double alone = P99();
    Run(6s);
    const double bulk = Run(4s);
    EXPECT_LT(P99(), ToSeconds(bound) * 1e6) << "the bound is not kept";
    if (bound == 2ms) {
      EXPECT_LT(P99(), 3 * alone);
    }
    EXPECT_GT(bulk, 1.03 * before) << bound / 1ms;
    before = bulk;
  }
  EXPECT_GT(before, 0.85 * most_);
}

TEST_F(BulkGovernorTest, HoldsNobodyWhoCostsTheReaderNothing) {
  Run(1s, false);
  bulk_matters_ = 0.2;
  for (int i = 0; i < 5; ++i) EXPECT_GT(Run(1s), 0.9 * most_);
  EXPECT_EQ(governor_.rate(), 0u);
}

// Whoever was never seen alone is held to the bound, and not to less.
TEST_F(BulkGovernorTest, WithoutATimeAloneTheBoundIsKept) {
  use_ = most_ / can_;
  Run(10s);
  Run(5s);
  EXPECT_LT(P99(), 2000);
  EXPECT_GT(P99(), 400);
}

TEST_F(BulkGovernorTest, StepsWhenEnoughMissedAndDoesNotWaitForAWholeWindow) {
  reads_ = 1;
  Run(900ms, false);  // three windows
  ASSERT_EQ(governor_.rate(), 0u);
  use_ = most_ / can_;
  Run(150ms);
  EXPECT_GT(governor_.rate(), 0u);
}

// What held bulk back is gone: bulk does not have to climb for long, nor from below 1/16.
TEST_F(BulkGovernorTest, DoesNotWindUp) {
  Run(1s, false);
  others_ = 0.95;
  Run(1500ms);  // at its deepest, not yet futile
  EXPECT_GT(governor_.rate(), 0.8 * most_ * kMiB / BulkGovernor::kDeepest);
  others_ = 0;
  bulk_matters_ = 0;
  Run(8s);
  EXPECT_EQ(governor_.rate(), 0u);
  // And it is held again from what it has then, not from what it might have had.
  bulk_matters_ = 1;
  most_ = 100;
  Run(20s);
  most_ = 480;
  Run(1s);
  const double now = Run(1s);
  EXPECT_LT(now, 0.8 * most_) << "a rate that nobody used had grown";
}

// Goal: programs that have nothing to do with WeirFS cost its writers a fifth of their time and
// not nearly all of it, and people are told.
TEST_F(BulkGovernorTest, WhatDoesNotHelpIsGivenBackAndTold) {
  Run(1s, false);
  EXPECT_FALSE(governor_.Of(kReader).futile);
  bulk_matters_ = 0;
  others_ = 0.95;
  Run(4s);
  EXPECT_TRUE(governor_.Of(kReader).futile);
  EXPECT_GT(governor_.Of(kReader).quantile, 2ms);
  EXPECT_GT(Run(48s), 0.7 * most_);
  others_ = 0;
  Run(15s);
  EXPECT_FALSE(governor_.Of(kReader).futile);
}

TEST_F(BulkGovernorTest, WhatHelpsIsHeldThoughTheTargetIsOutOfReach) {
  Run(1s, false);
  others_ = 0.9;
  bulk_matters_ = 0.09;
  const double held = (Run(5s), Run(5s));
  EXPECT_FALSE(governor_.Of(kReader).futile);
  EXPECT_LT(held, 0.5 * most_);
}

TEST_F(BulkGovernorTest, NobodyIsHeldWhileTheRateIsNotInForce) {
  Run(1s, false);
  guarded_ = false;
  Run(5s);
  EXPECT_EQ(governor_.rate(), 0u);
  EXPECT_FALSE(governor_.Of(kReader).futile);
}

TEST_F(BulkGovernorTest, TheClassThatMissesMostDecides) {
  Run(1s, false);
  Run(5s);
  const double one = Run(4s);
  has_second_ = true;  // a class with all the time in the world
  Run(2s);
  EXPECT_NEAR(Run(4s), one, 0.06 * one);
}

TEST_F(BulkGovernorTest, AnotherBoundIsAnotherRate) {
  Run(1s, false);
  Run(5s);
  const double tight = Run(2s);
  contract_ = Contract(40ms);
  Run(10s);
  EXPECT_GT(Run(2s), 1.3 * tight);
}

TEST_F(BulkGovernorTest, ALongSilenceForgetsTheRate) {
  Run(1s, false);
  Run(5s);
  ASSERT_GT(governor_.rate(), 0u);
  now_ += BulkGovernor::kRest + 1s;
  Run(1ms);
  EXPECT_EQ(governor_.rate(), 0u);
}

}  // namespace
}  // namespace weir::osd::qos
