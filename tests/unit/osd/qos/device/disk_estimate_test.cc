// Goal: only seconds in which the disk was the bottleneck say how fast it is; the alarm comes when
// it is slower than promised, not for small requests or little load, and goes when it recovers.
// Method: seconds by hand; then the whole scheduler on a disk whose speed changes.
#include "osd/qos/device/disk_estimate.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "osd/qos/scheduler.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using State = DiskEstimate::State;

constexpr uint64_t kMiB = 1 << 20;

class DiskEstimateTest : public ::testing::Test {
 protected:
  void Second(State state, uint64_t mib) {
    estimate_.Observe(state, now_);
    now_ += 1s;
    estimate_.Done(static_cast<double>(mib * kMiB));
    estimate_.CloseSecond(promise_, now_);
  }
  void Seconds(int count, State state, uint64_t mib) {
    for (int i = 0; i < count; ++i) Second(state, mib);
  }
  DiskEstimate::View Now() { return estimate_.Now(); }

  TimePoint now_{};
  DiskEstimate estimate_{now_};
  DiskEstimate::Promise promise_{100 * kMiB, 0};
};

TEST_F(DiskEstimateTest, KnowsNothingAsLongAsNobodyAsksForAll) {
  Seconds(100, State::kIdle, 10);
  Seconds(100, State::kShort, 40);
  EXPECT_EQ(Now().samples, 0u);
  EXPECT_FALSE(Now().slow);
}

TEST_F(DiskEstimateTest, IsTheMeanOfLoadedSecondsWithItsError) {
  for (int i = 0; i < 8; ++i) {
    Second(State::kLimits, 110);
    Second(State::kIdle, 5);
    Second(State::kLimits, 90);
  }
  EXPECT_EQ(Now().samples, 16u);
  EXPECT_EQ(Now().bytes_per_s, 100 * kMiB);
  EXPECT_NEAR(static_cast<double>(Now().give_or_take), 2 * 10.33 / 4 * kMiB, 0.1 * kMiB);
  Second(State::kIdle, 160);
  EXPECT_GT(Now().bytes_per_s, 100 * kMiB) << "it can do what it did";
}

TEST_F(DiskEstimateTest, TheAlarmNeedsFiveSecondsAndGoesAfterThreeGoodOnes) {
  Seconds(4, State::kLimits, 60);
  EXPECT_FALSE(Now().slow);
  Second(State::kLimits, 60);
  EXPECT_TRUE(Now().slow);
  EXPECT_EQ(Now().alarms, 1u);
  Seconds(2, State::kLimits, 95);
  Second(State::kLimits, 80);  // neither slow nor good
  Seconds(2, State::kLimits, 95);
  EXPECT_TRUE(Now().slow);
  Second(State::kLimits, 95);
  EXPECT_FALSE(Now().slow);
  Seconds(30, State::kLimits, 80);
  EXPECT_FALSE(Now().slow) << "raised at 3/4, cleared at 9/10";
  Seconds(16, State::kLimits, 70);
  EXPECT_TRUE(Now().slow);
  EXPECT_EQ(Now().alarms, 2u);
}

TEST_F(DiskEstimateTest, WhatIsPromisedCountsAndNotOnlyTheTokenRate) {
  promise_.promised = 90 * kMiB;
  Seconds(5, State::kLimits, 85);
  EXPECT_TRUE(Now().slow);
  promise_.promised = 50 * kMiB;
  Second(State::kIdle, 0);
  EXPECT_TRUE(Now().slow) << "85 is still below 9/10 of the token rate";
  promise_.token_rate = 80 * kMiB;
  Second(State::kIdle, 0);
  EXPECT_FALSE(Now().slow) << "a lower rate was applied";
}

TEST_F(DiskEstimateTest, IsForgottenWhenNothingMoreIsLearned) {
  Seconds(5, State::kLimits, 20);
  Seconds(599, State::kIdle, 0);
  EXPECT_TRUE(Now().slow);
  Seconds(2, State::kIdle, 0);
  EXPECT_FALSE(Now().slow);
  EXPECT_EQ(Now().samples, 0u);
}

TEST_F(DiskEstimateTest, ADiskWithoutATokenRateHasPromisedNothing) {
  promise_ = {};
  Seconds(50, State::kLimits, 1);
  EXPECT_FALSE(Now().slow);
  EXPECT_EQ(Now().bytes_per_s, kMiB);
}

// A disk that takes requests one after the other, at a rate that the test sets.
class SlowingDiskTest : public ::testing::Test {
 protected:
  static SchedulerConfig Config() {
    SchedulerConfig config;
    config.token_rate = 100 * kMiB;
    config.depth = 4;
    return config;
  }
  // Keeps `queued` requests waiting or on the disk for so long.
  void Run(Duration time, uint64_t bytes, size_t queued) {
    const TimePoint end = now_ + time;
    while (now_ < end) {
      while (scheduler_.queued() + scheduler_.in_flight() < queued) {
        auto request = std::make_unique<Request>();
        request->bytes = bytes;
        scheduler_.Enqueue(request.get(), now_);
        requests_.push_back(std::move(request));
      }
      for (PullResult next = scheduler_.Pull(now_); next.request != nullptr;
           next = scheduler_.Pull(now_)) {
        on_disk_.push_back(next.request);
      }
      const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
      now_ += FromSeconds(std::max(seconds, request_seconds_));
      scheduler_.Completed(on_disk_.front(), now_);
      on_disk_.pop_front();
      if (now_ >= scheduler_.NextTick()) scheduler_.Tick(now_);
    }
  }

  TimePoint now_{};
  uint64_t rate_ = 120 * kMiB;
  double request_seconds_ = 0;
  std::deque<Request*> on_disk_;
  std::deque<std::unique_ptr<Request>> requests_;
  Scheduler scheduler_{Config(), now_};
};

TEST_F(SlowingDiskTest, IsNoticedAndForgivenUnderLoad) {
  Run(20s, 256 << 10, 16);
  EXPECT_NEAR(static_cast<double>(scheduler_.State(now_).disk.bytes_per_s), 120.0 * kMiB,
              2.0 * kMiB);
  EXPECT_FALSE(scheduler_.State(now_).disk.slow);
  rate_ = 40 * kMiB;
  Run(20s, 256 << 10, 16);
  EXPECT_TRUE(scheduler_.State(now_).disk.slow);
  EXPECT_NEAR(static_cast<double>(scheduler_.State(now_).disk.bytes_per_s), 40.0 * kMiB,
              2.0 * kMiB);
  rate_ = 120 * kMiB;
  Run(5s, 256 << 10, 16);
  EXPECT_FALSE(scheduler_.State(now_).disk.slow);
  EXPECT_EQ(scheduler_.State(now_).disk.alarms, 1u);
}

TEST_F(SlowingDiskTest, AFewRequestsAtATimeSayNothing) {
  rate_ = 40 * kMiB;
  Run(20s, 256 << 10, 3);
  EXPECT_EQ(scheduler_.State(now_).disk.samples, 0u);
}

// G0 is booked as 1600 requests per second of 64 KiB.
TEST_F(SlowingDiskTest, SmallRequestsAreWorthWhatAdmissionBooksForThem) {
  request_seconds_ = 1.0 / 1600;
  Run(20s, 4096, 16);
  EXPECT_FALSE(scheduler_.State(now_).disk.slow);
  EXPECT_NEAR(static_cast<double>(scheduler_.State(now_).disk.bytes_per_s), 100.0 * kMiB,
              2.0 * kMiB);
  request_seconds_ = 1.0 / 160;
  Run(20s, 4096, 16);
  EXPECT_TRUE(scheduler_.State(now_).disk.slow)
      << "an arm that makes 160 requests a second, not 1600";
}

}  // namespace
}  // namespace weir::osd::qos
