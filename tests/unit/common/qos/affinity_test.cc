#include "common/qos/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr OsdId kA{0}, kB{1}, kC{2};

TEST(AffinityTest, MountsWithoutACommonOsdAreNamedWithWhatTheyUse) {
  const auto said = AffinityAnomaly({{"web", {{kB, 1}, {kC, 1}}}, {"idle", {}}, {"db", {{kA, 3}}}});
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(*said, AllOf(HasSubstr("db uses only osd.0 and web only osd.1, osd.2"),
                           HasSubstr("stripe_count")));
}

TEST(AffinityTest, OneOsdInCommonIsEnoughToTell) {
  EXPECT_FALSE(AffinityAnomaly({{"db", {{kA, 9}}}, {"web", {{kA, 0.01}, {kB, 9}}}}).has_value());
  EXPECT_FALSE(AffinityAnomaly({{"db", {{kA, 9}}}}).has_value());
  EXPECT_FALSE(AffinityAnomaly({}).has_value());
}

// A third one that uses all OSDs tells what it had itself, not what the others had.
TEST(AffinityTest, AThirdMountDoesNotTellForTheOthers) {
  const auto said =
      AffinityAnomaly({{"all", {{kA, 9}, {kB, 9}}}, {"db", {{kA, 1}}}, {"web", {{kB, 1}}}});
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(*said, HasSubstr("db uses only osd.0 and web only osd.1"));
}

}  // namespace
}  // namespace weir
