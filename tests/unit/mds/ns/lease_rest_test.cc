#include "mds/ns/lease_rest.h"

#include <gtest/gtest.h>

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

constexpr LeaseRest::Bounds kBounds{100ms, 4s};

class LeaseRestTest : public ::testing::Test {
 protected:
  // How long it lasts from now on.
  Duration Left() const {
    Duration left{0};
    while (rest_.On(now_ + left)) left += 50ms;
    return left;
  }

  LeaseRest rest_;
  TimePoint now_ = TimePoint{0} + 1000s;
};

TEST_F(LeaseRestTest, BeginsAnewWithEachChange) {
  EXPECT_FALSE(rest_.On(now_));
  for (int i = 0; i < 100; ++i) {
    rest_.Begin(now_, kBounds);
    EXPECT_EQ(Left(), 100ms);
    now_ += 99ms;
  }
  EXPECT_TRUE(rest_.On(now_));
  now_ += 1ms;
  EXPECT_FALSE(rest_.On(now_));
}

TEST_F(LeaseRestTest, IsTwiceAsLongWhenLeasesWereSoonInTheWayAgain) {
  for (const Duration expected : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 4000ms, 4000ms}) {
    rest_.Begin(now_, kBounds);
    EXPECT_EQ(Left(), expected);
    now_ += Left() + 50ms;
  }
}

TEST_F(LeaseRestTest, IsShortAgainAfterACalm) {
  for (int i = 0; i < 4; ++i) {
    rest_.Begin(now_, kBounds);
    now_ += Left();
  }
  now_ += 4 * 800ms - 1ms;
  rest_.Begin(now_, kBounds);
  EXPECT_EQ(Left(), 1600ms);
  now_ += Left() + 4 * 1600ms;
  rest_.Begin(now_, kBounds);
  EXPECT_EQ(Left(), 100ms);
}

}  // namespace
}  // namespace weir::mds
