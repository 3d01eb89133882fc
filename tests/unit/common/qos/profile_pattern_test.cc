#include "common/qos/profile_pattern.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ProfilePatternTest, SaysWhatIsWrittenAndInWhichSizes) {
  EXPECT_EQ(ParseProfilePattern("mixed")->write_percent, 50u);
  EXPECT_EQ(ParseProfilePattern("read")->write_percent, 0u);
  EXPECT_EQ(ParseProfilePattern("write:64KiB")->write_percent, 100u);
  using Sizes = std::vector<uint64_t>;
  EXPECT_EQ(ParseProfilePattern("write:64KiB")->sizes, Sizes{65536});
  EXPECT_EQ(ParseProfilePattern("mixed")->sizes, (Sizes{512 << 10, 64 << 10, 4 << 10}));
  EXPECT_EQ(ParseProfilePattern("read:4MiB+8KiB")->sizes, (Sizes{4 << 20, 8 << 10}));
}

TEST(ProfilePatternTest, SaysInWhichOrderAndHowManyAtATime) {
  const auto plain = ParseProfilePattern("read");
  EXPECT_EQ(plain->sequential_percent, 0u);
  EXPECT_EQ(plain->depth, 16u);
  const auto full = ParseProfilePattern("mixed:64KiB,writes=30%,sequential=50,depth=32");
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->write_percent, 30u);
  EXPECT_EQ(full->sequential_percent, 50u);
  EXPECT_EQ(full->depth, 32u);
}

TEST(ProfilePatternTest, RefusesTheRest) {
  for (const char* bad : {"", "random", "read:", "read:1", "read:8MiB", "write:0", "write:6000",
                          "read:4KiB+1", "mixed,writes=101", "mixed,writes=", "mixed,depth=0",
                          "mixed,depth=257", "mixed,sequential=half", "mixed,speed=3"}) {
    EXPECT_EQ(ParseProfilePattern(bad).code(), ErrorCode::kInvalid) << bad;
  }
}

}  // namespace
}  // namespace weir
