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

TEST(SoleWritersTest, KnowsFilesOfThisLifeUntilAnotherOpensThem) {
  SoleWriters sole;
  EXPECT_FALSE(sole.HasOne(5));
  sole.Made(5);
  sole.Made(6);
  EXPECT_FALSE(sole.HasOne(4)) << "of a life before";
  sole.HasSeveral(4);
  sole.HasSeveral(5);
  EXPECT_FALSE(sole.HasOne(5));
  EXPECT_TRUE(sole.HasOne(6));
}

TEST(SoleWritersTest, ForgetsFilesRatherThanWhoOpenedThem) {
  SoleWriters sole;
  const uint64_t most = SoleWriters::kMost;
  for (uint64_t inode = 1; inode <= 2 * most; ++inode) sole.Made(inode);
  for (uint64_t inode = 1; inode <= most; ++inode) sole.HasSeveral(inode);
  EXPECT_TRUE(sole.HasOne(2 * most));
  sole.Gone(1);
  sole.HasSeveral(most + 1);
  EXPECT_TRUE(sole.HasOne(2 * most));
  sole.HasSeveral(most + 2);
  for (uint64_t inode = 1; inode <= 2 * most; ++inode) ASSERT_FALSE(sole.HasOne(inode));
  sole.Made(2 * most + 1);
  EXPECT_TRUE(sole.HasOne(2 * most + 1));
}

}  // namespace
}  // namespace weir::mds
