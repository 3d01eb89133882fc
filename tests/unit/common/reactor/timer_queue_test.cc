#include "common/reactor/timer_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(TimerQueueTest, TasksRunInTheOrderOfTheirTimesThenOfTheirMaking) {
  TimerQueue queue;
  std::string ran;
  queue.Add(TimePoint{20}, [&] { ran += 'c'; });
  queue.Add(TimePoint{10}, [&] { ran += 'a'; });
  queue.Add(TimePoint{10}, [&] { ran += 'b'; });
  queue.Add(TimePoint{30}, [&] { ran += 'd'; });
  EXPECT_EQ(queue.Next(), TimePoint{10});
  EXPECT_FALSE(queue.Run(TimePoint{9}));
  EXPECT_TRUE(queue.Run(TimePoint{20}));
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(queue.Next(), TimePoint{30});
  queue.Run(TimePoint{30});
  EXPECT_EQ(ran, "abcd");
  EXPECT_EQ(queue.Next(), TimePoint::Max());
}

TEST(TimerQueueTest, ACancelledOneNeverRunsAlsoWhenCancelledByOneThatIsDueWithIt) {
  TimerQueue queue;
  int ran = 0;
  LoopTimer second = 0;
  queue.Add(TimePoint{10}, [&] { queue.Cancel(second); });
  second = queue.Add(TimePoint{10}, [&] { ++ran; });
  const LoopTimer third = queue.Add(TimePoint{5}, [&] { ++ran; });
  queue.Cancel(third);
  queue.Cancel(third);
  queue.Cancel(0);
  queue.Run(TimePoint{10});
  EXPECT_EQ(ran, 0);
}

// Else one that makes the next at once would keep a loop from all else.
TEST(TimerQueueTest, OneThatIsMadeWhileOthersRunHasItsTurnNextTime) {
  TimerQueue queue;
  int ran = 0;
  std::function<void()> again = [&] {
    ++ran;
    queue.Add(TimePoint{1}, again);
  };
  queue.Add(TimePoint{1}, again);
  queue.Run(TimePoint{10});
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(queue.Next(), TimePoint{1});
  queue.Run(TimePoint{10});
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace weir
