#include "common/qos/delay_function.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(HybridFactorTest, MatchesThePapersExample) {
  EXPECT_DOUBLE_EQ(HybridFactor(1.0 / 2, 1.0 / 12), 10);
  EXPECT_DOUBLE_EQ(HybridFactor(0.3, 0.3), 0);  // no less than the share: plain SFQ
  EXPECT_DOUBLE_EQ(HybridFactor(1, 0.1), 0);    // nobody to be fair to
}

TEST(HybridFactorTest, AClassThatAlwaysPaysTheCapKeepsItsMinimumShare) {
  for (double phi : {0.1, 0.25, 0.5, 0.9}) {
    for (double part : {0.05, 0.5, 0.99}) {
      const double rate = phi / (1 + HybridFactor(phi, part * phi));
      EXPECT_NEAR(rate / (rate + 1 - phi), part * phi, 1e-12) << phi << " " << part;
    }
  }
}

TEST(CountedDelayTest, EachSharingCountsItsPart) {
  EXPECT_EQ(CountedDelay(SharingKind::kSingle, 500, 8, 10), 0);
  EXPECT_EQ(CountedDelay(SharingKind::kTotal, 500, 8, 10), 500);
  EXPECT_EQ(CountedDelay(SharingKind::kHybrid, 500, 8, 10), 80);
  EXPECT_EQ(CountedDelay(SharingKind::kHybrid, 50, 8, 10), 50);
  EXPECT_EQ(CountedDelay(SharingKind::kHybridH, 500, 8, 10), 500);
  EXPECT_EQ(CountedDelay(SharingKind::kTotal, -5, 8, 10), 0);
}

}  // namespace
}  // namespace weir
