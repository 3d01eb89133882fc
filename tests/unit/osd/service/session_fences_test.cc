#include "osd/service/session_fences.h"

#include <gtest/gtest.h>

namespace weir::osd {
namespace {

constexpr uint64_t kLost = 7;
constexpr uint64_t kOther = 8;

TEST(SessionFencesTest, RefusesWhatIsOlderThanTheFence) {
  SessionFences fences;
  EXPECT_TRUE(fences.Begin(kLost, 4).ok());
  fences.End(kLost, 4);
  fences.Apply({{kLost, Epoch(5)}}, Epoch(5));
  EXPECT_EQ(fences.Begin(kLost, 4).code(), ErrorCode::kStale);
  EXPECT_TRUE(fences.Begin(kOther, 4).ok());
  EXPECT_TRUE(fences.Begin(kLost, 5).ok()) << "it knows what it has lost";
}

// What was fenced while an OSD was away would else be welcome until it has heard of it.
TEST(SessionFencesTest, ChangesNothingBeforeItKnowsWhoIsFenced) {
  SessionFences fences(true);
  EXPECT_EQ(fences.Begin(kLost, 4).code(), ErrorCode::kBusy);
  EXPECT_EQ(fences.Begin(kOther, 5).code(), ErrorCode::kBusy);
  fences.Apply({{kLost, Epoch(5)}}, Epoch(5));
  EXPECT_EQ(fences.Begin(kLost, 4).code(), ErrorCode::kStale);
  EXPECT_TRUE(fences.Begin(kOther, 4).ok());
}

TEST(SessionFencesTest, IsDrainedWhenNothingOlderIsUnderWay) {
  SessionFences fences;
  fences.Apply({}, Epoch(4));
  EXPECT_EQ(fences.Drained(), Epoch(4));
  ASSERT_TRUE(fences.Begin(kLost, 4).ok());
  ASSERT_TRUE(fences.Begin(kLost, 4).ok());
  ASSERT_TRUE(fences.Begin(kOther, 4).ok());
  fences.Apply({{kLost, Epoch(6)}}, Epoch(7));
  EXPECT_EQ(fences.Drained(), Epoch(5));
  ASSERT_TRUE(fences.Begin(kLost, 7).ok());
  fences.End(kLost, 4);
  EXPECT_EQ(fences.Drained(), Epoch(5));
  fences.End(kLost, 4);
  EXPECT_EQ(fences.Drained(), Epoch(7)) << "what it sends by a new map does not count";
}

}  // namespace
}  // namespace weir::osd
