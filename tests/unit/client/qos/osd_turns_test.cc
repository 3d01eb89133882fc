#include "client/qos/osd_turns.h"

#include <gtest/gtest.h>

#include <array>

namespace weir::client {
namespace {

TEST(OsdTurnsTest, TheOneThatWasAskedLongestAgoIsNext) {
  const std::array<OsdTurn, 3> turns{{{.flying_bytes = 10, .next_bytes = 10, .last = 7},
                                      {.flying_bytes = 20, .next_bytes = 10, .last = 5},
                                      {.flying_bytes = 30, .next_bytes = 10, .last = 6}}};
  EXPECT_EQ(NextOsdTurn(turns), 1u);
}

TEST(OsdTurnsTest, OneWithMuchMoreUnderWayThanAnotherIsLeftOut) {
  std::array<OsdTurn, 2> turns{{{.flying_bytes = 100, .next_bytes = 10, .last = 9},
                                {.flying_bytes = 220, .next_bytes = 10, .last = 1}}};
  EXPECT_EQ(NextOsdTurn(turns), 1u) << "twice as much and two requests";
  turns[1].flying_bytes = 221;
  EXPECT_EQ(NextOsdTurn(turns), 0u);
}

TEST(OsdTurnsTest, OneAloneIsNeverLeftOut) {
  const std::array<OsdTurn, 1> alone{{{.flying_bytes = 1 << 20, .next_bytes = 1, .last = 3}}};
  EXPECT_EQ(NextOsdTurn(alone), 0u);
}

}  // namespace
}  // namespace weir::client
