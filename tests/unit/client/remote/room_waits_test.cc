// Goal: whoever meets no room waits for removals that are under way, and not for ever. Method: the
// test answers how many there are, and moves the clock.
#include "client/remote/room_waits.h"

#include <gtest/gtest.h>

#include "common/testing/manual_clock.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

class RoomWaitsTest : public ::testing::Test {
 protected:
  void Await(RoomWaits::Wait* wait) {
    waits_.Await(wait, [this](bool again) { told_.push_back(again); });
  }
  void Answer(Result<uint64_t> pending) {
    ASSERT_FALSE(asked_.empty());
    const auto answer = std::move(asked_.front());
    asked_.erase(asked_.begin());
    answer(std::move(pending));
  }
  void Pass(Duration time) {
    clock_.Advance(time);
    waits_.Tick();
  }

  testing::ManualClock clock_;
  std::vector<std::function<void(Result<uint64_t>)>> asked_;
  std::vector<bool> told_;
  RoomWaits waits_{clock_, [this](auto answer) { asked_.push_back(std::move(answer)); }};
};

TEST_F(RoomWaitsTest, WhereNothingIsBeingRemovedOneMoreTryEndsIt) {
  RoomWaits::Wait wait;
  Await(&wait);
  Answer(0);
  EXPECT_EQ(told_, std::vector{true}) << "a removal may have ended between the try and the answer";
  Await(&wait);
  EXPECT_EQ(told_, (std::vector{true, false}));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(RoomWaitsTest, TriesAgainInLongerStepsAsLongAsSomethingIsBeingRemoved) {
  RoomWaits::Wait wait;
  Await(&wait);
  Answer(2);
  std::vector<Duration> pauses;
  Duration pause = 0ms;
  for (int tries = 0; tries < 5;) {
    if (told_.size() == static_cast<size_t>(tries) + 1) {
      ASSERT_TRUE(told_.back());
      Await(&wait);
      ++tries;
      pause = 0ms;
    }
    Pass(100ms);
    pause += 100ms;
    if (asked_.empty()) continue;
    pauses.push_back(pause);
    Answer(2);
  }
  ASSERT_GE(pauses.size(), 4u);
  pauses.resize(4);
  EXPECT_EQ(pauses, (std::vector<Duration>{100ms, 200ms, 400ms, 800ms}));
  if (told_.size() == 6) Await(&wait);
  while (asked_.empty()) Pass(100ms);
  Answer(0);
  EXPECT_TRUE(told_.back()) << "once more, when all have been removed";
  Await(&wait);
  EXPECT_FALSE(told_.back());
}

TEST_F(RoomWaitsTest, NobodyWaitsLongNorForWhatWasWaitedForInVain) {
  RoomWaits::Wait wait;
  Await(&wait);
  Answer(2);
  clock_.Advance(RoomWaits::kLongest);
  Await(&wait);
  EXPECT_EQ(told_, (std::vector{true, false}));
  RoomWaits::Wait next;
  Await(&next);
  Answer(2);
  EXPECT_FALSE(told_.back()) << "they are the same";
  RoomWaits::Wait later;
  Await(&later);
  Answer(1);
  EXPECT_TRUE(told_.back()) << "one of them has ended";
}

TEST_F(RoomWaitsTest, WhatWasWaitedForInVainIsWaitedForAgainLater) {
  RoomWaits::Wait wait;
  Await(&wait);
  Answer(2);
  clock_.Advance(RoomWaits::kLongest);
  Await(&wait);
  clock_.Advance(RoomWaits::kLongest - 1ms);
  RoomWaits::Wait early;
  Await(&early);
  Answer(2);
  EXPECT_FALSE(told_.back());
  clock_.Advance(1ms);
  RoomWaits::Wait later;
  Await(&later);
  Answer(2);
  EXPECT_TRUE(told_.back()) << "as many, but maybe others";
}

TEST_F(RoomWaitsTest, WhoHeardOfNoRemovalTakesTheLastTryFromNobody) {
  RoomWaits::Wait wait;
  Await(&wait);  // nobody answers
  Pass(RoomWaits::kLongest);
  EXPECT_EQ(told_, std::vector{false});
  RoomWaits::Wait next;
  Await(&next);
  Answer(0);  // late: asked before that one came
  EXPECT_EQ(told_.size(), 1u);
  Answer(0);
  EXPECT_TRUE(told_.back()) << "the removals may have just ended";
}

TEST_F(RoomWaitsTest, AnAnswerThatDoesNotComeEndsIt) {
  RoomWaits::Wait wait;
  Await(&wait);
  Pass(RoomWaits::kLongest - 1ms);
  EXPECT_TRUE(told_.empty());
  Pass(1ms);
  EXPECT_EQ(told_, std::vector{false});
  Answer(1);  // late
  RoomWaits::Wait next;
  Await(&next);
  Answer(Status(ErrorCode::kTimedOut, "lost"));
  EXPECT_EQ(told_, (std::vector{false, false}));
  RoomWaits::Wait last;
  Await(&last);
  waits_.Stop();
  EXPECT_EQ(told_.size(), 3u);
}

TEST_F(RoomWaitsTest, WhoComesDuringAQuestionHasTheNextOneAskedAtOnce) {
  RoomWaits::Wait first;
  RoomWaits::Wait second;
  RoomWaits::Wait third;
  Await(&first);
  clock_.Advance(1ms);
  Await(&second);
  Await(&third);
  EXPECT_EQ(asked_.size(), 1u);
  Answer(1);
  EXPECT_EQ(told_.size(), 1u);
  Answer(0);
  EXPECT_EQ(told_, (std::vector{true, true, true}));
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace weir::client
