#include "common/base/adaptive_poll.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::microseconds;

void Wait(AdaptivePoll* poll, int times, Duration wait) {
  for (int i = 0; i < times; ++i) poll->Waited(wait);
}

TEST(AdaptivePollTest, LooksWhileWaitsAreShort) {
  AdaptivePoll poll;
  EXPECT_EQ(poll.Budget(), Duration(0)) << "nothing is known yet";
  Wait(&poll, 20, microseconds(30));
  EXPECT_EQ(poll.Budget(), AdaptivePoll::kLookFor);
  Wait(&poll, 20, microseconds(300));
  EXPECT_EQ(poll.Budget(), Duration(0));
}

TEST(AdaptivePollTest, AWaitOfExactlyTheBudgetIsShort) {
  AdaptivePoll poll;
  Wait(&poll, 20, AdaptivePoll::kLookFor);
  EXPECT_EQ(poll.Budget(), AdaptivePoll::kLookFor);
  Wait(&poll, 20, AdaptivePoll::kLookFor + Duration(1));
  EXPECT_EQ(poll.Budget(), Duration(0));
}

TEST(AdaptivePollTest, KnowsWhichWaitOfARoundIsLong) {
  AdaptivePoll poll;
  for (int i = 0; i < 40; ++i) {
    poll.Waited(microseconds(30));
    poll.Waited(microseconds(200));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(poll.Budget(), AdaptivePoll::kLookFor) << "the short one is next";
    poll.Waited(microseconds(30));
    EXPECT_EQ(poll.Budget(), Duration(0)) << "the long one is next";
    poll.Waited(microseconds(200));
  }
}

TEST(AdaptivePollTest, RestsWhenSomebodyElseWantsTheProcessor) {
  AdaptivePoll poll;
  Wait(&poll, 20, microseconds(30));
  poll.Looked(microseconds(40), microseconds(38));
  EXPECT_EQ(poll.Budget(), AdaptivePoll::kLookFor) << "an interrupt is nobody";
  poll.Looked(microseconds(40), microseconds(25));
  EXPECT_EQ(poll.Budget(), Duration(0));
  Wait(&poll, AdaptivePoll::kRestWaits - 1, microseconds(30));
  EXPECT_EQ(poll.Budget(), Duration(0));
  Wait(&poll, 1, microseconds(30));
  EXPECT_EQ(poll.Budget(), AdaptivePoll::kLookFor);
}

}  // namespace
}  // namespace weir
