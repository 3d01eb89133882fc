// Writers: who is evicted for the sake of those that wait for what he may have buffered.
#include "mds/ns/writers.h"

#include <gtest/gtest.h>

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kWriter = 7;

class WritersTest : public ::testing::Test {
 protected:
  WritersTest() {
    writers_.Load(kWriter, 1);
    writers_.AwaitMissing();
  }
  // A round in which somebody who waits asks again.
  void Round(TimePoint now, bool asks) {
    writers_.BeginRound();
    if (asks) writers_.Await(kWriter, now);
  }
  Writers writers_;
  const TimePoint start_{};
};

TEST_F(WritersTest, OneThatIsAwaitedForLongIsOverdue) {
  for (int i = 0; i <= 5; ++i) {
    EXPECT_TRUE(writers_.Overdue(start_ + i * 1s, 5s).empty());
    Round(start_ + i * 1s, true);
  }
  EXPECT_EQ(writers_.Overdue(start_ + 5s + 1ms, 5s), std::vector{kWriter});
}

TEST_F(WritersTest, NobodyIsOverdueForWhoWaitsNoMore) {
  Round(start_, true);
  Round(start_ + 1s, false);
  EXPECT_TRUE(writers_.Overdue(start_ + 1min, 5s).empty());
  Round(start_ + 1min, true);
  EXPECT_TRUE(writers_.Overdue(start_ + 1min + 5s, 5s).empty()) << "who comes later waits anew";
}

TEST_F(WritersTest, NobodyIsOverdueUnasked) {
  EXPECT_TRUE(writers_.Overdue(start_ + 1h, 5s).empty());
}

}  // namespace
}  // namespace weir::mds
