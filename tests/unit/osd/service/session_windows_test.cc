#include "osd/service/session_windows.h"

#include <gtest/gtest.h>

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;
constexpr ClassId kGold{16};
constexpr ClassId kWeb{17};

class SessionWindowsTest : public ::testing::Test {
 protected:
  uint64_t Roundtrip(uint64_t session, ClassId class_id) {
    EXPECT_TRUE(windows_.Admit(session, class_id, 4096, now_).ok());
    return windows_.Release(session, class_id, 4096, now_);
  }
  SessionWindows windows_{{.budget_bytes = 64 * kMiB}};
  TimePoint now_{0};
};

TEST_F(SessionWindowsTest, ALonePairGetsTheLargestGrantAndACrowdSharesTheBudget) {
  EXPECT_EQ(Roundtrip(1, kGold), 16 * kMiB);
  for (uint64_t session = 2; session <= 8; ++session) Roundtrip(session, kGold);
  EXPECT_EQ(Roundtrip(1, kGold), 8 * kMiB);
  EXPECT_EQ(Roundtrip(1, kWeb), 64 * kMiB / 9) << "another class of a session is another pair";
  for (uint64_t session = 100; session < 300; ++session) Roundtrip(session, kGold);
  EXPECT_EQ(Roundtrip(1, kGold), kMiB) << "never below the least grant";
}

TEST_F(SessionWindowsTest, APairThatRestedGivesItsShareBack) {
  for (uint64_t session = 1; session <= 16; ++session) Roundtrip(session, kGold);
  EXPECT_EQ(Roundtrip(1, kGold), 4 * kMiB);
  now_ += 3s;
  EXPECT_EQ(Roundtrip(1, kGold), 16 * kMiB);
  EXPECT_EQ(windows_.active(), 1u);
}

TEST_F(SessionWindowsTest, APairWithRequestsUnderWayIsActiveHoweverLongTheyTake) {
  ASSERT_TRUE(windows_.Admit(1, kGold, kMiB, now_).ok());
  now_ += 1h;
  Roundtrip(2, kGold);
  EXPECT_EQ(windows_.active(), 2u);
  windows_.Release(1, kGold, kMiB, now_);
  EXPECT_EQ(windows_.in_flight_bytes(), 0u);
}

TEST_F(SessionWindowsTest, BeyondTwiceTheGrantIsBusyInThatClassOnly) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(windows_.Admit(1, kGold, 4 * kMiB, now_).ok()) << i;
  const Status busy = windows_.Admit(1, kGold, 1, now_);
  EXPECT_EQ(busy.code(), ErrorCode::kBusy);
  EXPECT_TRUE(windows_.Admit(1, kWeb, 4 * kMiB, now_).ok());
  EXPECT_TRUE(windows_.Admit(2, kGold, 4 * kMiB, now_).ok());
  EXPECT_EQ(windows_.in_flight_bytes(), 40 * kMiB) << "what was refused is not counted";
  windows_.Release(1, kGold, 4 * kMiB, now_);
  EXPECT_TRUE(windows_.Admit(1, kGold, 1, now_).ok());
}

TEST_F(SessionWindowsTest, AShrunkGrantIsHeldAgainstAClientOnlyOnceItWasTold) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(windows_.Admit(1, kGold, 4 * kMiB, now_).ok());
  EXPECT_EQ(windows_.Release(1, kGold, 4 * kMiB, now_), 16 * kMiB);
  for (uint64_t session = 2; session <= 32; ++session) Roundtrip(session, kGold);
  EXPECT_TRUE(windows_.Admit(1, kGold, 4 * kMiB, now_).ok()) << "was told 16 MiB";
  EXPECT_EQ(windows_.Release(1, kGold, 4 * kMiB, now_), 2 * kMiB);
  EXPECT_EQ(windows_.Admit(1, kGold, 4 * kMiB, now_).code(), ErrorCode::kBusy);
}

TEST_F(SessionWindowsTest, InAHurryGrantsAreSmallAndNobodyIsRefusedForWhatHeWasTold) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(windows_.Admit(1, kGold, 4 * kMiB, now_).ok());
  EXPECT_EQ(windows_.Release(1, kGold, 4 * kMiB, now_, true), 2 * kMiB);
  EXPECT_TRUE(windows_.Admit(1, kGold, 4 * kMiB, now_).ok()) << "sent before it was told";
  EXPECT_EQ(windows_.Release(1, kGold, 4 * kMiB, now_), 16 * kMiB) << "the hurry is over";
  for (uint64_t session = 2; session <= 64; ++session) Roundtrip(session, kGold);
  EXPECT_EQ(windows_.Release(1, kGold, 4 * kMiB, now_, true), kMiB) << "never more than else";
}

TEST_F(SessionWindowsTest, OneRequestIsAlwaysWelcome) {
  SessionWindows tiny({.budget_bytes = 1, .grant_min = 1, .grant_max = 1, .start_grant = 1});
  EXPECT_TRUE(tiny.Admit(1, kGold, 4 * kMiB, now_).ok());
  EXPECT_EQ(tiny.Admit(1, kGold, 1, now_).code(), ErrorCode::kBusy);
}

}  // namespace
}  // namespace weir::osd
