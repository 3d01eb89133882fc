#include "common/base/short_turns.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weir
