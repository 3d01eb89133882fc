#include "common/qos/profile_pattern.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ProfilePatternTest, SaysWhatIsWrittenAndInWhichSizes) {
  EXPECT_EQ(ParseProfilePattern("mixed")->write_percent, 50u);
  EXPECT_EQ(ParseProfilePattern("read")->write_percent, 0u);
  EXPECT_EQ(ParseProfilePattern("write:64KiB")->write_percent, 100u);
  EXPECT_EQ(ParseProfilePattern("write:64KiB")->size, 65536u);
  EXPECT_EQ(ParseProfilePattern("mixed")->size, 0u);
}

TEST(ProfilePatternTest, RefusesTheRest) {
  for (const char* bad : {"", "random", "read:", "read:1", "read:8MiB", "write:0", "write:6000"}) {
    EXPECT_EQ(ParseProfilePattern(bad).code(), ErrorCode::kInvalid) << bad;
  }
}

}  // namespace
}  // namespace weir
