#include "common/base/short_turns.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(ShortTurnsTest, AreInheritedAndNobodyElses) {
  const Duration before = TurnOfThisThread();
  Duration own{0}, started{0};
  std::thread([&] {
    TakeShortTurns();
    own = TurnOfThisThread();
    std::thread([&] { started = TurnOfThisThread(); }).join();
  }).join();
  EXPECT_EQ(TurnOfThisThread(), before);
  EXPECT_EQ(started, own);
  if (before == 0s) GTEST_SKIP() << "this kernel, or policy, has no turns";
  EXPECT_LE(own, before);
  EXPECT_LE(own, 1ms);
}

TEST(ShortTurnsTest, WhoRunsAheadOfThemDoesSoAlone) {
  const int before = sched_getscheduler(0);
  int own = -1, started = -1;
  std::thread([&] {
    RunAheadOfTurns();
    own = sched_getscheduler(0);
    std::thread([&] { started = sched_getscheduler(0); }).join();
  }).join();
  EXPECT_EQ(sched_getscheduler(0), before);
  EXPECT_EQ(started, SCHED_OTHER);
  if (own == before) GTEST_SKIP() << "this process may not ask for it";
  EXPECT_EQ(own & ~SCHED_RESET_ON_FORK, SCHED_FIFO);
}

TEST(ShortTurnsTest, WhoWeighsMostDoesSoAlone) {
  const auto nice = [] { return getpriority(PRIO_PROCESS, gettid()); };
  const int before = nice();
  int own = 0, started = 0;
  Duration turn{0}, turn_after{0};
  std::thread([&] {
    TakeShortTurns();
    turn = TurnOfThisThread();
    WeighMost();
    own = nice();
    turn_after = TurnOfThisThread();
    std::thread([&] { started = nice(); }).join();
  }).join();
  EXPECT_EQ(nice(), before);
  EXPECT_EQ(turn_after, turn);
  if (own == before) GTEST_SKIP() << "this process may not ask for it";
  EXPECT_EQ(own, -20);
  EXPECT_EQ(started, 0);
}

TEST(ShortTurnsTest, APolicyThatSomebodyChoseStays) {
  int policy = -1;
  std::thread([&] {
    const sched_param none{};
    if (sched_setscheduler(0, SCHED_BATCH, &none) != 0) return;
    WeighMost();
    policy = sched_getscheduler(0);
  }).join();
  EXPECT_EQ(policy, SCHED_BATCH);
}

TEST(ShortTurnsTest, WhoRanAheadTakesTurnsAgain) {
  bool ahead = false, told_before = true, told = false, told_after = true;
  int policy = -1, policy_ahead = -1;
  std::thread([&] {
    told_before = RunsAheadOfTurns();
    ahead = RunAheadOfTurns();
    told = RunsAheadOfTurns();
    policy_ahead = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    WeighMost();
    told_after = RunsAheadOfTurns();
    policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  }).join();
  EXPECT_FALSE(told_before);
  EXPECT_EQ(told, ahead);
  EXPECT_FALSE(told_after);
  if (!ahead) GTEST_SKIP() << "this process may not ask for it";
  EXPECT_EQ(policy_ahead, SCHED_FIFO);
  EXPECT_EQ(policy, SCHED_OTHER);
}

}  // namespace
}  // namespace weir
