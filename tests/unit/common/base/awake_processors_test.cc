#include "common/base/awake_processors.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "common/testing/manual_clock.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// Polled by hand, as its thread would.
class AwakeProcessorsTest : public ::testing::Test {
 protected:
  // Lets time pass in steps, in each of which one request comes and stays as long as it takes for
  // `beside` others to be under way.
  void Requests(int steps, int beside) {
    for (int i = 0; i < steps; ++i) {
      for (; under_way_ > beside; --under_way_) processors_.Ended();
      while (under_way_ <= beside) Began();
      clock_.Advance(AwakeProcessors::kStep);
      next_ = processors_.Poll();
    }
  }
  // So many in each step, that take so long.
  void Reads(int steps, Duration duration, int count) {
    for (int i = 0; i < steps; ++i) {
      for (int read = 0; read < count; ++read) processors_.Took(duration);
      clock_.Advance(AwakeProcessors::kStep);
      next_ = processors_.Poll();
    }
  }
  void Began() {
    ++under_way_;
    processors_.Began();
  }
  void Quiet(Duration duration) {
    for (Duration passed{0}; passed < duration; passed += AwakeProcessors::kStep) {
      clock_.Advance(AwakeProcessors::kStep);
      next_ = processors_.Poll();
    }
  }

  weir::testing::ManualClock clock_;
  int changes_ = 0;
  bool awake_ = false;
  int under_way_ = 0;
  TimePoint next_;
  AwakeProcessors processors_{clock_, [this](bool awake) {
                                ++changes_;
                                awake_ = awake;
                              }};
};

TEST_F(AwakeProcessorsTest, SleepUntilSomethingBegins) {
  EXPECT_EQ(processors_.Poll(), TimePoint::Max());
  EXPECT_EQ(changes_, 0);
  Began();
  EXPECT_EQ(processors_.Poll(), clock_.Now() + AwakeProcessors::kStep);
  EXPECT_TRUE(awake_);
}

TEST_F(AwakeProcessorsTest, LingerBetweenRequestsOfOneWhoThinks) {
  Requests(1, 0);
  Quiet(AwakeProcessors::kLinger - AwakeProcessors::kStep);
  EXPECT_TRUE(awake_);
  Requests(1, 0);
  EXPECT_EQ(changes_, 1);
  Quiet(AwakeProcessors::kLinger);
  EXPECT_FALSE(awake_);
  EXPECT_EQ(next_, clock_.Now() + AwakeProcessors::kStep);
  Quiet(AwakeProcessors::kDoze);
  EXPECT_EQ(next_, TimePoint::Max());
}

// Goal: a machine with much to do keeps its clock rate and its other threads' share.
TEST_F(AwakeProcessorsTest, NotWhileManyAreUnderWay) {
  Requests(5, 0);
  EXPECT_TRUE(awake_);
  Requests(50, 16);
  EXPECT_FALSE(awake_);
  Requests(50, 6);  // neither few nor many: as it was
  EXPECT_FALSE(awake_);
  Requests(50, 1);
  EXPECT_TRUE(awake_);
  Requests(50, 6);
  EXPECT_TRUE(awake_);
  EXPECT_EQ(changes_, 3);
}

TEST_F(AwakeProcessorsTest, AShortBurstChangesNothing) {
  Requests(20, 0);
  Requests(2, 20);
  Requests(20, 0);
  EXPECT_EQ(changes_, 1);
}

// Goal: a small read from a quick disk is a matter of steps too; from a slow one it is not.
TEST_F(AwakeProcessorsTest, QuickReadsOneAtATime) {
  Reads(5, 300us, 3);
  EXPECT_TRUE(awake_);
  Quiet(AwakeProcessors::kLinger);
  EXPECT_FALSE(awake_);
  Quiet(AwakeProcessors::kDoze);
  EXPECT_EQ(next_, TimePoint::Max());
  Reads(50, AwakeProcessors::kQuick + 1us, 1);
  EXPECT_EQ(changes_, 2);
}

// Those that their class holds back do not count, however many.
TEST_F(AwakeProcessorsTest, AQuickReadBesideManySlowOnes) {
  for (int i = 0; i < 50; ++i) {
    for (int slow = 0; slow < 64; ++slow) processors_.Took(600ms);
    Reads(1, 300us, 3);
  }
  EXPECT_TRUE(awake_);
  EXPECT_EQ(changes_, 1);
}

TEST_F(AwakeProcessorsTest, NotForManyQuickReadsAtATime) {
  Reads(50, 500us, 30);  // 15 under way
  EXPECT_FALSE(awake_);
  Reads(50, 500us, 4);
  EXPECT_TRUE(awake_);
}

// Metadata that came in crowds a while ago says nothing of the reads that come now.
TEST_F(AwakeProcessorsTest, AFormerCrowdIsForgotten) {
  Requests(50, 16);
  for (; under_way_ > 0; --under_way_) processors_.Ended();
  Quiet(AwakeProcessors::kLinger);
  Reads(5, 300us, 3);
  EXPECT_TRUE(awake_);
}

TEST(AwakeProcessors, ItsThreadHearsOfTheFirstRequestAndOfTheEnd) {
  std::promise<void> kept, ended;
  bool was_kept = false;
  AwakeProcessors processors(SystemClock::Get(), [&](bool awake) {
    if (awake == was_kept) return;
    was_kept = awake;
    (awake ? kept : ended).set_value();
  });
  processors.Start();
  processors.Began();
  processors.Ended();
  EXPECT_EQ(kept.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_EQ(ended.get_future().wait_for(60s), std::future_status::ready);
}

TEST(AwakeProcessors, EndWithTheirOwner) {
  weir::testing::ManualClock clock;
  bool awake = false;
  {
    AwakeProcessors processors(clock, [&](bool now) { awake = now; });
    processors.Began();
    (void)processors.Poll();
    EXPECT_TRUE(awake);
  }
  EXPECT_FALSE(awake);
}

}  // namespace
}  // namespace weir
