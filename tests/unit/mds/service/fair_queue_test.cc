// Goal: beyond its depth the order is fair by weight, nothing is lost, and work that gives its turn
// back at once, or while other work begins, is no trouble. Method: turns that the test holds.
#include "mds/service/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "common/testing/manual_clock.h"

namespace weir::mds {
namespace {

constexpr ClassId kHog{16};
constexpr ClassId kOther{17};

class FairQueueTest : public ::testing::Test {
 protected:
  static constexpr size_t kDepth = 32;
  ~FairQueueTest() override { queue_.Stop(); }  // what is held gives its turns to nobody then
  void Submit(ClassId class_id, double weight = 1, FlowKey flow = {}) {
    queue_.Submit({.class_id = class_id, .terms = {.weight = weight}, .flow = flow},
                  [this, class_id](FairQueue::Turn turn) {
                    begun_.push_back(class_id);
                    held_.push_back(std::move(turn));
                  });
  }
  void EndFirst() {
    const FairQueue::Turn turn = std::move(held_.front());  // what begins then is held too
    held_.pop_front();
  }
  size_t Begun(ClassId class_id) const {
    return static_cast<size_t>(std::count(begun_.begin(), begun_.end(), class_id));
  }

  testing::ManualClock clock_;
  FairQueue queue_{clock_, {.depth = kDepth}};
  std::vector<ClassId> begun_;
  std::deque<FairQueue::Turn> held_;
};

TEST_F(FairQueueTest, BelowItsDepthNothingWaits) {
  for (size_t i = 0; i < kDepth; ++i) Submit(kHog);
  EXPECT_EQ(begun_.size(), kDepth);
  EndFirst();
  Submit(kOther);
  EXPECT_EQ(begun_.size(), kDepth + 1);
  for (const ClassOrder::Load& load : queue_.Loads()) EXPECT_EQ(load.delayed, 0u);
}

TEST_F(FairQueueTest, WhoeverComesBesideALongQueueBeginsAtOnce) {
  for (int i = 0; i < 1000; ++i) Submit(kHog);
  Submit(kOther);
  EXPECT_EQ(Begun(kOther), 1u) << "behind a thousand of another class";
  EXPECT_EQ(Begun(kHog), kDepth);
  EndFirst();
  const auto loads = queue_.Loads();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].operations, 1000u);
  EXPECT_EQ(loads[0].queued, 1000 - kDepth)
      << "the other one holds a place for as long as it is under way";
  EXPECT_EQ(loads[0].delayed, 0u);
  EndFirst();
  EXPECT_EQ(queue_.Loads()[0].delayed, 1u);
}

TEST_F(FairQueueTest, SoDoesAnotherUserOfTheClass) {
  for (uint64_t i = 0; i < 100; ++i) Submit(kHog, 1, {1, i});
  ASSERT_EQ(begun_.size(), kDepth);
  Submit(kHog, 1, {2, 1});
  EXPECT_EQ(begun_.size(), kDepth + 1);
  Submit(kHog, 1, {1, 1000});
  EXPECT_EQ(begun_.size(), kDepth + 1) << "a new program of whoever floods";
}

TEST_F(FairQueueTest, ManyUsersWhoAskForLittleGoBeyondTheDepthAsFarAsItIsDeep) {
  for (uint64_t i = 0; i < 100; ++i) Submit(kHog, 1, {i, 1});
  EXPECT_EQ(begun_.size(), 2 * kDepth);
  EndFirst();
  EXPECT_EQ(begun_.size(), 2 * kDepth + 1);
}

TEST_F(FairQueueTest, SharesFollowWeights) {
  for (int i = 0; i < 400; ++i) {
    Submit(kHog, 1);
    Submit(kOther, 3);
  }
  begun_.clear();
  for (int i = 0; i < 200; ++i) EndFirst();
  EXPECT_NEAR(static_cast<double>(Begun(kOther)), 150, 2);
  EXPECT_NEAR(static_cast<double>(Begun(kHog)), 50, 2);
}

TEST_F(FairQueueTest, IdleClassesEarnNoCredit) {
  for (int i = 0; i < 500; ++i) Submit(kHog);
  for (int i = 0; i < 300; ++i) EndFirst();
  for (int i = 0; i < 100; ++i) Submit(kOther);
  begun_.clear();
  for (int i = 0; i < 100; ++i) EndFirst();
  EXPECT_NEAR(static_cast<double>(Begun(kHog)), 50, 2) << "the newcomer took all";
}

TEST_F(FairQueueTest, WorkThatEndsAtOnceRunsInALoopAndNotDeeperAndDeeper) {
  // Somebody else holds all there is, so that all of them wait.
  for (uint64_t i = 0; i < 2 * kDepth; ++i) Submit(kHog, 1, {i, 1});
  int ran = 0;
  for (int i = 0; i < 100'000; ++i) {
    queue_.Submit({.class_id = kOther}, [&ran](const FairQueue::Turn&) { ++ran; });
  }
  EXPECT_EQ(ran, 0);
  EndFirst();
  EXPECT_EQ(ran, 100'000);
}

TEST_F(FairQueueTest, ATurnThatTheWorkItselfKeepsIsGivenBackToo) {
  for (uint64_t i = 0; i < 2 * kDepth; ++i) Submit(kHog, 1, {i, 1});
  int ran = 0;
  for (int i = 0; i < 10; ++i) {
    queue_.Submit({.class_id = kOther},
                  [&ran, kept = FairQueue::Turn()](FairQueue::Turn turn) mutable {
                    kept = std::move(turn);
                    ++ran;
                  });
  }
  EndFirst();
  EXPECT_EQ(ran, 10);
}

TEST(FairQueueHandoverTest, WhoGivesATurnBackRunsSomeAndHandsOverTheRest) {
  testing::ManualClock clock;
  std::deque<FairQueue::Task> handed;
  FairQueue queue(clock, {.depth = 1, .hand_over = [&handed](FairQueue::Task work) {
                            handed.push_back(std::move(work));
                          }});
  std::vector<FairQueue::Turn> held(2);
  for (FairQueue::Turn& one : held) {
    queue.Submit({.class_id = kHog}, [&one](FairQueue::Turn turn) { one = std::move(turn); });
  }
  size_t ran = 0;
  constexpr size_t kLooks = 3 * FairQueue::kCostForOthers;
  const auto look = [&] {
    queue.Submit({.class_id = kOther}, [&ran](const FairQueue::Turn&) { ++ran; });
  };
  for (size_t i = 0; i < kLooks; ++i) look();
  EXPECT_EQ(ran, 0u);
  held.front().reset();
  EXPECT_EQ(ran, FairQueue::kCostForOthers);
  ASSERT_EQ(handed.size(), 1u);
  while (!handed.empty()) {
    const auto work = std::move(handed.front());
    handed.pop_front();
    work();
  }
  EXPECT_EQ(ran, kLooks);
  look();
  EXPECT_EQ(ran, kLooks + 1);
  queue.Stop();
}

class FairQueueTurnTest : public ::testing::Test {
 protected:
  void Look(ClassId class_id, uint32_t cost = 1) {
    queue_.Submit({.class_id = class_id, .cost = cost},
                  [this, class_id](const FairQueue::Turn&) { ran_.push_back(class_id); });
  }
  // Those that they add run in the next turn.
  void NextTurn() {
    for (const FairQueue::Task& task : std::exchange(posted_, {})) task();
  }

  testing::ManualClock clock_;
  std::vector<FairQueue::Task> posted_;
  FairQueue queue_{clock_, {.post_here = [this](FairQueue::Task end) {
                     posted_.push_back(std::move(end));
                     return true;
                   }}};
  std::vector<ClassId> ran_;
};

TEST_F(FairQueueTurnTest, WhatComesInOneTurnIsInOrderThoughItIsAnsweredFromMemory) {
  for (int i = 0; i < 32; ++i) Look(kHog);
  Look(kOther);
  EXPECT_EQ(ran_.size(), 1u) << "all but the first wait for who else comes";
  NextTurn();
  EXPECT_EQ(ran_.size(), 1 + FairQueue::kCostInTurn);
  EXPECT_EQ(std::count(ran_.begin(), ran_.end(), kOther), 1);
  while (!posted_.empty()) NextTurn();
  EXPECT_EQ(ran_.size(), 33u);
}

TEST_F(FairQueueTurnTest, WhoeverComesBetweenTwoTurnsIsSoonNext) {
  for (int i = 0; i < 1000; ++i) Look(kHog);
  NextTurn();
  Look(kOther);
  NextTurn();
  EXPECT_EQ(std::count(ran_.begin(), ran_.end(), kOther), 1);
  EXPECT_LE(ran_.size(), 1 + 2 * FairQueue::kCostInTurn);
  while (!posted_.empty()) NextTurn();
}

TEST_F(FairQueueTurnTest, OneListingIsEnoughForATurn) {
  for (int i = 0; i < 10; ++i) Look(kHog, 8);
  NextTurn();
  EXPECT_EQ(ran_.size(), 2u);
  Look(kOther);
  NextTurn();
  EXPECT_EQ(ran_.back(), kHog);
  EXPECT_EQ(ran_[2], kOther) << "it stands behind more than one of the other's listings";
  while (!posted_.empty()) NextTurn();
}

TEST_F(FairQueueTurnTest, WhoIsAloneBeginsAtOnce) {
  Look(kHog);
  EXPECT_EQ(ran_.size(), 1u);
  NextTurn();
  EXPECT_TRUE(posted_.empty()) << "nothing is left to do";
  Look(kHog);
  EXPECT_EQ(ran_.size(), 2u);
  NextTurn();
  for (const ClassOrder::Load& load : queue_.Loads()) EXPECT_EQ(load.delayed, 0u);
}

TEST(FairQueueLimitTest, TellsWhenToRunWhatALimitHeldBack) {
  testing::ManualClock clock;
  int told = 0;
  FairQueue queue(clock, {.on_sooner = [&told] { ++told; }});
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    queue.Submit({.class_id = kHog, .terms = {.limit_per_s = 10}},
                 [&ran](const FairQueue::Turn&) { ++ran; });
  }
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(told, 1);
  while (ran < 3) {
    const TimePoint next = queue.NextAt();
    ASSERT_LE(next, clock.Now() + std::chrono::milliseconds(100));
    clock.Set(next - Duration(1));
    queue.Run();
    const int before = ran;
    clock.Set(next);
    queue.Run();
    EXPECT_EQ(ran, before + 1);
  }
  EXPECT_EQ(queue.NextAt(), TimePoint::Max());
}

TEST(FairQueueGoneTest, APostedTaskFindsNoQueue) {
  testing::ManualClock clock;
  FairQueue::Task end;
  {
    FairQueue queue(clock, {.post_here = [&end](FairQueue::Task task) {
                      end = std::move(task);
                      return true;
                    }});
    for (int i = 0; i < 3; ++i) queue.Submit({.class_id = kHog}, [](const FairQueue::Turn&) {});
  }
  end();
}

// Prevents: what a dead mount asked for uses up its class's limit after its death.
TEST(FairQueueLimitTest, WhatASessionAskedForIsDroppedWithIt) {
  testing::ManualClock clock;
  FairQueue queue(clock, {});
  std::vector<uint64_t> begun;
  const auto submit = [&](uint64_t session) {
    queue.Submit(
        {.class_id = kHog, .terms = {.limit_per_s = 10}, .flow = {session, 1}, .session = session},
        [&begun, session](const FairQueue::Turn&) { begun.push_back(session); });
  };
  for (int i = 0; i < 100; ++i) submit(2);
  submit(1);
  submit(1);
  queue.DropSession(2);
  EXPECT_EQ(queue.Loads()[0].queued, 2u);
  for (int i = 0; i < 2; ++i) {
    clock.Set(queue.NextAt());
    queue.Run();
  }
  EXPECT_EQ(begun, (std::vector<uint64_t>{2, 1, 1}));
  EXPECT_EQ(queue.NextAt(), TimePoint::Max());
}

TEST_F(FairQueueTest, NothingBeginsAfterStop) {
  for (int i = 0; i < 100; ++i) Submit(kHog);
  queue_.Stop();
  while (!held_.empty()) EndFirst();
  Submit(kOther);
  EXPECT_EQ(begun_.size(), kDepth);
}

TEST_F(FairQueueTest, ReportsOfFlowsHaveWhatBeganAndWhatWaits) {
  for (uint64_t i = 0; i < 200; ++i) {
    Submit(kHog, 1, {1, i});
    Submit(kOther, 1, {2, i});
  }
  const auto flows = queue_.Flows(32);
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_EQ(flows[0].class_id, kHog);
  const FlowUse& hog = flows[0].report.all;
  const FlowUse& other = flows[1].report.all;
  EXPECT_EQ(hog.requests + hog.waiting, 200u);
  EXPECT_EQ(other.requests + other.waiting, 200u);
  EXPECT_EQ(hog.requests + other.requests, begun_.size());
}

}  // namespace
}  // namespace weir::mds
