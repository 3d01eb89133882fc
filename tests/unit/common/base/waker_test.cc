#include "common/base/waker.h"

#include <gtest/gtest.h>

#include <future>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(WakerTest, PollsWhenWokenBetweenStartAndStop) {
  std::promise<void> first, second;
  std::atomic<int> polls{0};
  Waker waker(SystemClock::Get(), [&] {
    const int count = ++polls;
    if (count == 1) first.set_value();
    if (count == 2) second.set_value();
    return TimePoint::Max();
  });
  waker.WakeBy(TimePoint{0});
  EXPECT_EQ(polls, 0) << "not started";
  waker.Start();
  waker.WakeBy(SystemClock::Get().Now());
  ASSERT_EQ(first.get_future().wait_for(60s), std::future_status::ready);
  waker.WakeBy(SystemClock::Get().Now());
  ASSERT_EQ(second.get_future().wait_for(60s), std::future_status::ready);
  waker.Stop();
  const int after = polls;
  waker.WakeBy(TimePoint{0});
  EXPECT_EQ(polls, after);
}

}  // namespace
}  // namespace weir
