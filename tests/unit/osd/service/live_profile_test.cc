#include "osd/service/live_profile.h"

#include <gtest/gtest.h>

#include "common/disk/faulty_device.h"
#include "tests/unit/osd/io/held_object_store.h"

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

const ProfilePattern kReads{.write_percent = 0};

TEST(LiveProfileTest, ProposesLessThanTheMeanInWholeMebibytesAndIsRepeatable) {
  MemDevice device(64 << 20);
  testing::HeldObjectStore store;
  store.immediate = true;
  DiskProfile profiles[2];
  for (DiskProfile& profile : profiles) {
    TickingClock clock;
    const Result<DiskProfile> measured = MeasureDisk(device, store, clock, {.pattern = kReads});
    ASSERT_TRUE(measured.ok()) << measured.status();
    profile = *measured;
  }
  // Two looks at the clock per read: 500 reads/s of 193 KiB on average.
  EXPECT_NEAR(static_cast<double>(profiles[0].mean_bytes_per_s), 500.0 * 193 * 1024, 20e6);
  EXPECT_LT(profiles[0].proposed_bytes_per_s, profiles[0].mean_bytes_per_s);
  EXPECT_GT(profiles[0].proposed_bytes_per_s, profiles[0].mean_bytes_per_s / 3);
  EXPECT_EQ(profiles[0].proposed_bytes_per_s % (1 << 20), 0u);
  EXPECT_EQ(profiles[0].proposed_bytes_per_s, profiles[1].proposed_bytes_per_s);
  EXPECT_EQ(profiles[0].alone_p99, 2ms) << "two looks at the clock";
}

TEST(LiveProfileTest, ADeviceErrorEndsTheMeasurement) {
  FaultyDevice device(std::make_unique<MemDevice>(64 << 20));
  device.FailAt(10);
  testing::HeldObjectStore store;
  store.immediate = true;
  TickingClock clock;
  EXPECT_EQ(MeasureDisk(device, store, clock, {.pattern = kReads}).code(), ErrorCode::kIo);
}

TEST(LiveProfileTest, ADiskSmallerThanTheLargestReadIsMeasuredToo) {
  MemDevice device(16 << 10);
  testing::HeldObjectStore store;
  store.immediate = true;
  TickingClock clock;
  EXPECT_TRUE(MeasureDisk(device, store, clock, {.pattern = kReads}).ok());
}

// On a real store: every write is flushed as any other, and nothing is left of them.
TEST(LiveProfileTest, WritesGoThroughTheStoreAndLeaveNothing) {
  MemDevice device(512 << 20);
  ASSERT_TRUE(MakeStore(device, {}).ok());
  const auto store = OpenStore(device, {});
  ASSERT_TRUE(store.ok()) << store.status();
  const uint64_t flushes = device.counters().flushes;
  DiskProfileOptions options{.pattern = {.write_percent = 100, .sizes = {64 << 10}}};
  options.duration = 500ms;
  const auto profile = MeasureDisk(device, **store, SystemClock::Get(), options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_GT(device.counters().flushes, flushes);
  EXPECT_EQ((*store)->Stats().objects, 0u);
  EXPECT_GT(profile->proposed_bytes_per_s, 0u);
  EXPECT_TRUE((*store)->Close().ok());
}

// Notes where it is read.
class NotingDevice final : public BlockDevice {
 public:
  [[nodiscard]] uint64_t size() const override { return 256 << 20; }
  [[nodiscard]] const std::string& name() const override { return name_; }
  std::vector<uint64_t> offsets;  // of the workload
  uint64_t alone = 0;             // small reads

 protected:
  void DoRead(uint64_t offset, Buffer data, Done done) override {
    data.size() == 4096 ? static_cast<void>(++alone) : offsets.push_back(offset);
    done({});
  }
  void DoWrite(uint64_t, Buffer, Done done) override { done({}); }
  void DoFlush(Done done) override { done({}); }
  Status DoDiscard(uint64_t, uint64_t) override { return {}; }

 private:
  const std::string name_ = "noting";
};

TEST(LiveProfileTest, PartOfTheRequestsGoOnWhereTheLastOneEnded) {
  const auto going_on = [](uint32_t percent) {
    NotingDevice device;
    testing::HeldObjectStore store;
    store.immediate = true;
    TickingClock clock;
    const ProfilePattern pattern{
        .write_percent = 0, .sizes = {64 << 10}, .sequential_percent = percent, .depth = 4};
    EXPECT_TRUE(MeasureDisk(device, store, clock, {.pattern = pattern}).ok());
    EXPECT_EQ(device.alone, 200u) << "one after the other, to see how long one takes";
    size_t on = 0;
    for (size_t i = 1; i < device.offsets.size(); ++i) {
      on += device.offsets[i] == device.offsets[i - 1] + (64 << 10) ? 1 : 0;
    }
    return static_cast<double>(on) / static_cast<double>(device.offsets.size());
  };
  EXPECT_NEAR(going_on(0), 0, 0.02);
  EXPECT_NEAR(going_on(50), 0.5, 0.05);
  EXPECT_NEAR(going_on(100), 1, 0.02);
}

TEST(LiveProfileTest, AFullDiskIsNotMeasuredByWriting) {
  MemDevice device(64 << 20);
  testing::HeldObjectStore store;
  store.immediate = true;
  store.stats.capacity_bytes = 255 << 20;
  TickingClock clock;
  EXPECT_EQ(MeasureDisk(device, store, clock, {}).code(), ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace weir::osd
