// Goal: beyond its depth the order is fair by weight, nothing is lost, and work that gives its turn
// back at once, or while other work begins, is no trouble. Method: turns that the test holds.
#include "mds/service/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace weir::mds {
namespace {

constexpr ClassId kHog{16};
constexpr ClassId kOther{17};

class FairQueueTest : public ::testing::Test {
 protected:
  ~FairQueueTest() override { queue_.Stop(); }  // what is held gives its turns to nobody then
  void Submit(ClassId class_id, double weight = 1) {
    queue_.Submit(class_id, weight, [this, class_id](FairQueue::Turn turn) {
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

  FairQueue queue_{4};
  std::vector<ClassId> begun_;
  std::deque<FairQueue::Turn> held_;
};

TEST_F(FairQueueTest, BelowItsDepthNothingWaits) {
  for (int i = 0; i < 4; ++i) Submit(kHog);
  EXPECT_EQ(begun_.size(), 4u);
  EndFirst();
  Submit(kOther);
  EXPECT_EQ(begun_.size(), 5u);
  for (const FairQueue::Load& load : queue_.Loads()) EXPECT_EQ(load.delayed, 0u);
}

TEST_F(FairQueueTest, WhoeverComesBesideALongQueueIsNext) {
  for (int i = 0; i < 1000; ++i) Submit(kHog);
  Submit(kOther);
  EndFirst();
  EndFirst();
  EXPECT_EQ(Begun(kOther), 1u) << "behind a thousand of another class";
  const auto loads = queue_.Loads();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].operations, 1000u);
  EXPECT_EQ(loads[0].queued, 995u);
  EXPECT_EQ(loads[0].delayed, 996u);
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
  for (int i = 0; i < 4; ++i) Submit(kHog);
  int ran = 0;
  for (int i = 0; i < 100'000; ++i) {
    queue_.Submit(kOther, 1, [&ran](const FairQueue::Turn&) { ++ran; });
  }
  EXPECT_EQ(ran, 0);
  EndFirst();
  EXPECT_EQ(ran, 100'000);
}

TEST_F(FairQueueTest, ATurnThatTheWorkItselfKeepsIsGivenBackToo) {
  for (int i = 0; i < 4; ++i) Submit(kHog);
  int ran = 0;
  for (int i = 0; i < 10; ++i) {
    queue_.Submit(kOther, 1, [&ran, kept = FairQueue::Turn()](FairQueue::Turn turn) mutable {
      kept = std::move(turn);
      ++ran;
    });
  }
  EndFirst();
  EXPECT_EQ(ran, 10);
}

TEST(FairQueueHandoverTest, WhoGivesATurnBackRunsSomeAndHandsOverTheRest) {
  std::deque<std::function<void()>> handed;
  FairQueue queue(1, [&handed](std::function<void()> work) { handed.push_back(std::move(work)); });
  FairQueue::Turn held;
  queue.Submit(kHog, 1, [&held](FairQueue::Turn turn) { held = std::move(turn); });
  size_t ran = 0;
  constexpr size_t kLooks = 3 * FairQueue::kRunsForOthers;
  for (size_t i = 0; i < kLooks; ++i) {
    queue.Submit(kOther, 1, [&ran](const FairQueue::Turn&) { ++ran; });
  }
  held.reset();
  EXPECT_EQ(ran, FairQueue::kRunsForOthers);
  ASSERT_EQ(handed.size(), 1u);
  queue.Submit(kOther, 1, [&ran](const FairQueue::Turn&) { ++ran; });
  EXPECT_EQ(ran, 2 * FairQueue::kRunsForOthers) << "whoever comes helps";
  EXPECT_EQ(handed.size(), 1u);
  while (!handed.empty()) {
    const auto work = std::move(handed.front());
    handed.pop_front();
    work();
  }
  EXPECT_EQ(ran, kLooks + 1);
  queue.Stop();
}

TEST_F(FairQueueTest, NothingBeginsAfterStop) {
  for (int i = 0; i < 10; ++i) Submit(kHog);
  queue_.Stop();
  while (!held_.empty()) EndFirst();
  Submit(kOther);
  EXPECT_EQ(begun_.size(), 4u);
}

}  // namespace
}  // namespace weir::mds
