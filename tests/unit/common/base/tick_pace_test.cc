// Goal: ticks are rare only when nothing has happened for a while, and whoever begins something
// anew learns that it has to wake the thread.
#include "common/base/tick_pace.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

class TickPaceTest : public ::testing::Test {
 protected:
  // Ticks until the sleep is long; how many were brief.
  int BriefTicks() {
    for (int ticks = 0;; ++ticks) {
      if (pace_.Next(false) != 100ms) return ticks;
    }
  }
  TickPace pace_{{.brief = 100ms, .lengthy = 1s, .settles = 5s}};
};

TEST_F(TickPaceTest, SleepsLongWhenItWasUnusedForAWhile) {
  EXPECT_EQ(BriefTicks(), 50);
  EXPECT_EQ(pace_.Next(false), 1s);
  EXPECT_FALSE(pace_.woken());
}

TEST_F(TickPaceTest, WhoeverUsesItWakesItOnce) {
  BriefTicks();
  EXPECT_TRUE(pace_.Used());
  EXPECT_TRUE(pace_.woken());
  EXPECT_FALSE(pace_.Used()) << "somebody does already";
  EXPECT_EQ(BriefTicks(), 50);
}

TEST_F(TickPaceTest, UseInABriefSleepWakesNobodyAndCounts) {
  EXPECT_EQ(pace_.Next(false), 100ms);
  EXPECT_FALSE(pace_.Used());
  EXPECT_FALSE(pace_.woken());
  EXPECT_EQ(BriefTicks(), 50);
}

TEST_F(TickPaceTest, WhatIsUnderWayKeepsItAwake) {
  for (int i = 0; i < 200; ++i) EXPECT_EQ(pace_.Next(true), 100ms);
  EXPECT_EQ(BriefTicks(), 49) << "the last busy tick is the first quiet one";
}

}  // namespace
}  // namespace weir
