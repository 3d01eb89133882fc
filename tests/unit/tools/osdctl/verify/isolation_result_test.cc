#include "tools/osdctl/verify/isolation_result.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

IsolationResult Good() {
  IsolationResult result;
  result.osds = {0};
  result.seconds = 2;
  for (uint32_t i = 1; i <= 100; ++i) {
    result.alone_us.push_back(i);
    result.beside_us.push_back(2 * i);
  }
  result.aggressor_bytes = 1000;
  result.victim_share_bytes = 95;
  result.aggressor_share_bytes = 105;
  return result;
}

TEST(IsolationResultTest, MeasuresWhatItSays) {
  const IsolationVerdict verdict = JudgeIsolation(Good(), {});
  EXPECT_EQ(verdict.alone_p99_us, 99);
  EXPECT_EQ(verdict.beside_p50_us, 100);
  ASSERT_EQ(verdict.checks.size(), 3u);
  EXPECT_DOUBLE_EQ(verdict.checks[0].measured, 2);
  EXPECT_NEAR(verdict.checks[1].measured, 0.05, 1e-12);
  EXPECT_NEAR(verdict.checks[2].measured, 0.9975, 1e-4);
  EXPECT_TRUE(verdict.pass);
  const Json json = IsolationDocument(Good(), verdict);
  EXPECT_EQ(json["aggressor_bytes_per_s"], 500);
  EXPECT_EQ(json["checks"][1]["name"], "share_error");
  EXPECT_EQ(json["pass"], true);
}

TEST(IsolationResultTest, EachCheckFailsByItself) {
  IsolationResult slow = Good();
  slow.beside_us.assign(100, 500);
  EXPECT_FALSE(JudgeIsolation(slow, {}).pass);
  IsolationResult unfair = Good();
  unfair.victim_share_bytes = 40;
  unfair.aggressor_share_bytes = 160;
  const IsolationVerdict verdict = JudgeIsolation(unfair, {});
  EXPECT_TRUE(verdict.checks[0].pass);
  EXPECT_FALSE(verdict.checks[1].pass);
  EXPECT_NEAR(verdict.checks[1].measured, 0.6, 1e-12);
  EXPECT_FALSE(verdict.checks[2].pass);
  EXPECT_FALSE(verdict.pass);
}

// Prevents: two bounds on one deviation that contradict each other.
TEST(IsolationResultTest, WhoAllowsMoreShareErrorAllowsItAltogether) {
  IsolationResult uneven = Good();
  uneven.victim_share_bytes = 71;
  uneven.aggressor_share_bytes = 129;
  IsolationBounds bounds;
  EXPECT_FALSE(JudgeIsolation(uneven, bounds).pass);
  bounds.share_error_max = 0.30;
  EXPECT_TRUE(JudgeIsolation(uneven, bounds).pass);
  bounds.share_error_max = 0.28;
  EXPECT_FALSE(JudgeIsolation(uneven, bounds).pass);
}

TEST(IsolationResultTest, NoServiceIsNoIsolation) {
  IsolationResult starved = Good();
  starved.beside_us.clear();
  const IsolationVerdict verdict = JudgeIsolation(starved, {});
  EXPECT_FALSE(verdict.pass);
  EXPECT_TRUE(IsolationDocument(starved, verdict)["checks"][0]["measured"].is_null());
  EXPECT_EQ(ShareError(0, 0), 1);
  EXPECT_EQ(JainIndex({0, 0}), 0);
  EXPECT_EQ(JainIndex({1, 0}), 0.5);
}

}  // namespace
}  // namespace weir::osdctl
