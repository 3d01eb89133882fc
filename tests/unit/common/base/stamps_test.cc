// Goal: stamps follow the order of events as far as anybody could see it, however clocks differ.
#include "common/base/stamps.h"

#include <gtest/gtest.h>

#include "common/testing/manual_clock.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

class SteppingClock final : public Clock {
 public:
  TimePoint Now() override { return {}; }
  WallTime WallNow() override { return {now}; }
  int64_t now = 1'000'000'000'000;
};

TEST(StampsTest, NeverGoBackWhenTheClockIsCorrected) {
  SteppingClock clock;
  Stamps stamps(clock);
  const int64_t first = stamps.Next();
  clock.now -= Duration(2s).count();
  EXPECT_EQ(stamps.Next(), first);
  clock.now += Duration(3s).count();
  EXPECT_EQ(stamps.Next(), clock.now);
}

TEST(StampsTest, FollowAClockThatWasSet) {
  SteppingClock clock;
  Stamps stamps(clock);
  (void)stamps.Next();
  clock.now -= Duration(1h).count();
  EXPECT_EQ(stamps.Next(), clock.now);
}

TEST(StampsTest, AreNoOlderThanWhatWasSeen) {
  testing::ManualClock slow, fast;
  fast.Advance(5s);
  Stamps here(slow), there(fast);
  const int64_t first = there.Next();
  EXPECT_EQ(here.Saw(first), first);
  EXPECT_GE(here.Next(), first);
  EXPECT_EQ(here.Saw(first - 100), first - 100) << "what is older is what it is";
  EXPECT_GE(here.Next(), first);
}

TEST(StampsTest, AClockThatIsFarAheadIsNotFollowed) {
  testing::ManualClock clock;
  Stamps stamps(clock);
  const int64_t now = stamps.Next();
  EXPECT_EQ(stamps.Saw(now + Duration(1h).count()), now);
  EXPECT_EQ(stamps.Next(), now);
}

}  // namespace
}  // namespace weir
