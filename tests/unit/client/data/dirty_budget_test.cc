#include "client/data/dirty_budget.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;
constexpr ClassId kSlow{16};
constexpr ClassId kFast{17};

// Keeps the class at its limit while `rate` leaves every second, for that long.
void Saturate(DirtyBudget& budget, ClassId class_id, uint64_t rate, Duration time, TimePoint* now) {
  constexpr Duration kStep = 100ms;
  for (Duration passed{0}; passed < time; passed += kStep) {
    const uint64_t room = budget.LimitOf(class_id) - budget.HeldBy(class_id);
    if (budget.LimitOf(class_id) > budget.HeldBy(class_id)) budget.Took(class_id, room, *now);
    *now += kStep;
    budget.Landed(class_id, std::min(rate / 10, budget.HeldBy(class_id)), *now);
  }
}

TEST(DirtyBudgetTest, ASlowClassMayHoldSomeSecondsOfWhatItsDisksTake) {
  DirtyBudget budget(64 * kMiB);
  TimePoint now;
  Saturate(budget, kSlow, kMiB, 10s, &now);
  EXPECT_NEAR(static_cast<double>(budget.LimitOf(kSlow)), 4.0 * kMiB, 1000);
  EXPECT_LE(budget.HeldBy(kSlow), 4 * kMiB);
  Saturate(budget, kSlow, kMiB / 8, 30s, &now);
  EXPECT_EQ(budget.LimitOf(kSlow), 2 * kMiB) << "never less than two runs";
}

TEST(DirtyBudgetTest, AFastClassMayHoldAQuarterOfTheMemoryAtOnce) {
  DirtyBudget budget(64 * kMiB);
  TimePoint now;
  Saturate(budget, kFast, 200 * kMiB, 400ms, &now);
  EXPECT_EQ(budget.LimitOf(kFast), 16 * kMiB);
  EXPECT_EQ(budget.LimitOf(kSlow), 4 * kMiB) << "of whom nothing is known";
}

TEST(DirtyBudgetTest, AClassWhoseLimitIsLiftedGrowsWithinASecond) {
  DirtyBudget budget(64 * kMiB);
  TimePoint now;
  Saturate(budget, kSlow, kMiB, 10s, &now);
  Saturate(budget, kSlow, 100 * kMiB, 1s, &now);
  EXPECT_EQ(budget.LimitOf(kSlow), 16 * kMiB);
}

TEST(DirtyBudgetTest, TimeWithoutDataSaysNothing) {
  DirtyBudget budget(64 * kMiB);
  TimePoint now;
  Saturate(budget, kFast, 200 * kMiB, 1s, &now);
  budget.Landed(kFast, budget.HeldBy(kFast), now);
  now += 100s;
  budget.Took(kFast, kMiB, now);
  now += 10ms;
  budget.Landed(kFast, kMiB, now);
  EXPECT_EQ(budget.LimitOf(kFast), 16 * kMiB);
  EXPECT_EQ(budget.held(), 0u);
}

TEST(DirtyBudgetTest, AKnownLimitBoundsWhatWaitsToTwoSecondsOfIt) {
  DirtyBudget budget(64 * kMiB);
  budget.SetLimits({{kSlow, kMiB / 4}});
  EXPECT_EQ(budget.LimitOf(kSlow), kMiB / 2) << "from the start";
  EXPECT_EQ(budget.LeastOf(kSlow), kMiB / 2);
  EXPECT_EQ(budget.LeastOf(kFast), 2 * kMiB);
  TimePoint now;
  Saturate(budget, kSlow, kMiB / 4, 10s, &now);
  EXPECT_EQ(budget.LimitOf(kSlow), kMiB / 2);
  budget.SetLimits({{kSlow, 1000}});
  EXPECT_EQ(budget.LimitOf(kSlow), kMiB / 8) << "some requests always";
  budget.SetLimits({{kSlow, UINT64_MAX}});
  EXPECT_EQ(budget.LimitOf(kSlow), 2 * kMiB) << "as measured";
}

}  // namespace
}  // namespace weir::client
