#include "common/base/short_turns.h"

#include <gtest/gtest.h>
#include <sched.h>

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

}  // namespace
}  // namespace weir
