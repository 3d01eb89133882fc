#include "osd/service/live_profile.h"

#include <gtest/gtest.h>

#include "common/disk/faulty_device.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

// Time that passes by being looked at, so that a measurement is the same on every machine.
class TickingClock final : public Clock {
 public:
  TimePoint Now() override { return now_ += 1ms; }
  WallTime WallNow() override { return {now_.ns}; }

 private:
  TimePoint now_{0};
};

TEST(LiveProfileTest, ProposesLessThanTheMeanInWholeMebibytesAndIsRepeatable) {
  MemDevice device(64 << 20);
  DiskProfile profiles[2];
  for (DiskProfile& profile : profiles) {
    TickingClock clock;
    const Result<DiskProfile> measured = MeasureReads(device, clock, {});
    ASSERT_TRUE(measured.ok()) << measured.status();
    profile = *measured;
  }
  // Two looks at the clock per read: 500 reads/s of 193 KiB on average.
  EXPECT_NEAR(static_cast<double>(profiles[0].mean_bytes_per_s), 500.0 * 193 * 1024, 20e6);
  EXPECT_LT(profiles[0].proposed_bytes_per_s, profiles[0].mean_bytes_per_s);
  EXPECT_GT(profiles[0].proposed_bytes_per_s, profiles[0].mean_bytes_per_s / 3);
  EXPECT_EQ(profiles[0].proposed_bytes_per_s % (1 << 20), 0u);
  EXPECT_EQ(profiles[0].proposed_bytes_per_s, profiles[1].proposed_bytes_per_s);
}

TEST(LiveProfileTest, ADeviceErrorEndsTheMeasurement) {
  FaultyDevice device(std::make_unique<MemDevice>(64 << 20));
  device.FailAt(10);
  TickingClock clock;
  EXPECT_EQ(MeasureReads(device, clock, {}).code(), ErrorCode::kIo);
}

TEST(LiveProfileTest, ADiskSmallerThanTheLargestReadIsMeasuredToo) {
  MemDevice device(16 << 10);
  TickingClock clock;
  EXPECT_TRUE(MeasureReads(device, clock, {}).ok());
}

}  // namespace
}  // namespace weir::osd
