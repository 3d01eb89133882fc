// Goal: time in a window counts while it passes, time on the network when it is known.
#include "client/remote/mount_meter.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

using namespace std::chrono_literals;
constexpr ClassId kGold{16};

TEST(MountMeterTest, BooksWindowsWhileRequestsStandThere) {
  MountMeter meter;
  TimePoint now{0};
  for (int i = 0; i < 3; ++i) meter.Queued(kGold, now);
  meter.Sent(kGold, now);
  now += 10ms;
  EXPECT_EQ(meter.Times(now).at(kGold).window_ns, 20'000'000u);
  meter.Dropped(kGold, 1, now);
  now += 10ms;
  meter.Sent(kGold, now);
  now += 10ms;
  const MountClassTimes times = meter.Times(now).at(kGold);
  EXPECT_EQ(times.window_ns, 30'000'000u);
  EXPECT_EQ(times.active_ns, 30'000'000u);
  EXPECT_EQ(times.network_ns, 0u);
}

TEST(MountMeterTest, BooksToTheLimitWhatItHoldsBack) {
  MountMeter meter;
  TimePoint now{0};
  meter.SetHeldByLimit(kGold, true, now);
  EXPECT_TRUE(meter.Times(now).empty()) << "it has nothing to hold";
  for (int i = 0; i < 3; ++i) meter.Queued(kGold, now);
  meter.SetHeldByLimit(kGold, true, now);
  now += 10ms;
  meter.SetHeldByLimit(kGold, false, now);
  now += 10ms;
  meter.SetHeldByLimit(kGold, true, now);
  meter.Dropped(kGold, 3, now);
  now += 10ms;
  const MountClassTimes times = meter.Times(now).at(kGold);
  EXPECT_EQ(times.limit_ns, 30'000'000u);
  EXPECT_EQ(times.limited_ns, 10'000'000u);
  EXPECT_EQ(times.window_ns, 30'000'000u);
  EXPECT_EQ(times.active_ns, 20'000'000u);
}

// Goal: an OSD that cannot be reached for a minute is seen in every second of it.
TEST(MountMeterTest, BooksTheWayWhileARequestWaitsToGoAgain) {
  MountMeter meter;
  TimePoint now{0};
  meter.Queued(kGold, now);
  meter.Sent(kGold, now);
  now += 10ms;
  meter.Back(kGold, now);
  meter.Lost(kGold, 10ms);
  meter.Parked(kGold, now);
  now += 1s;
  const MountClassTimes times = meter.Times(now).at(kGold);
  EXPECT_EQ(times.network_ns, 1'010'000'000u);
  EXPECT_EQ(times.active_ns, 1'010'000'000u);
  meter.Unparked(kGold, now);
  now += 1s;
  EXPECT_EQ(meter.Times(now).at(kGold), times);
}

TEST(MountMeterTest, BooksTheNetworkWithoutTheOsdAndNothingWhenIdle) {
  MountMeter meter;
  TimePoint now{0};
  meter.Queued(kGold, now);
  meter.Sent(kGold, now);
  now += 10ms;
  meter.Back(kGold, now);
  meter.Answered(kGold, 4096, 10ms, 7ms);
  now += 10ms;
  MountClassTimes times = meter.Times(now).at(kGold);
  EXPECT_EQ(times.network_ns, 3'000'000u);
  EXPECT_EQ(times.active_ns, 10'000'000u);
  EXPECT_EQ(times.ops, 1u);
  EXPECT_EQ(times.bytes, 4096u);
  meter.Answered(kGold, 4096, 1ms, 7ms);  // the OSD's clock ticks in microseconds
  EXPECT_EQ(meter.Times(now).at(kGold).network_ns, 3'000'000u);
}

}  // namespace
}  // namespace weir::client
