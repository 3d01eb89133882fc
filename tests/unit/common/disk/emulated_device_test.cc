// The emulated disk under a clock that stands still until it is told: no answer before its moment.
#include "common/disk/emulated_device.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <future>
#include <thread>

#include "common/disk/faulty_device.h"
#include "common/disk/model/hdd.h"
#include "common/disk/model/ssd.h"
#include "common/testing/manual_clock.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSize = 64 << 20;

// Takes a millisecond for each request, one after the other.
class OneByOne final : public model::DiskModel {
 public:
  explicit OneByOne(model::EventQueue* events) : events_(events) {}
  void Submit(const model::DiskIo&, Done done) override {
    free_at_ = std::max(free_at_, events_->now()) + 1ms;
    events_->At(free_at_, [done = std::move(done)] { done(1ms); });
  }

 private:
  model::EventQueue* const events_;
  TimePoint free_at_;
};

class EmulatedDeviceTest : public ::testing::Test {
 protected:
  static std::unique_ptr<model::DiskModel> Make(model::EventQueue* events) {
    return std::make_unique<OneByOne>(events);
  }
  BlockDevice::Done Note() {
    const size_t index = ended_.size();
    ended_.emplace_back();
    return [this, index](Status status) { ended_[index] = {true, std::move(status)}; };
  }
  struct End {
    bool is = false;
    Status status;
  };

  testing::ManualClock clock_;
  std::vector<End> ended_;
  FaultyDevice* below_ = new FaultyDevice(std::make_unique<MemDevice>(kSize));
  EmulatedDevice device_{std::unique_ptr<BlockDevice>(below_), Make, clock_, {.name = "slow"}};
};

// As the listing of a delete does, which a completed read may start.
TEST_F(EmulatedDeviceTest, ACallbackMayReadAndWait) {
  Status nested(ErrorCode::kTimedOut, "not read");
  device_.ReadAsync(0, Buffer::Aligned(kBlockSize), [&](const Status&) {
    nested = device_.Read(kBlockSize, Buffer::Aligned(kBlockSize));
  });
  clock_.Advance(1ms);
  device_.Advance();
  EXPECT_TRUE(nested.ok()) << nested.message();
}

TEST_F(EmulatedDeviceTest, AnswersComeAtTheModelsMomentsAndNotBefore) {
  Buffer bytes = Buffer::Aligned(kBlockSize);
  std::memset(bytes.data(), 7, bytes.size());
  Buffer read = Buffer::Aligned(kBlockSize);
  device_.WriteAsync(0, bytes, Note());
  device_.ReadAsync(0, read, Note());
  device_.FlushAsync(Note());
  EXPECT_EQ(device_.Advance(), clock_.Now() + 1ms);
  EXPECT_FALSE(ended_[0].is);
  clock_.Advance(1ms - 1ns);
  device_.Advance();
  EXPECT_FALSE(ended_[0].is);
  clock_.Advance(1ns);
  EXPECT_EQ(device_.Advance(), clock_.Now() + 1ms);
  EXPECT_TRUE(ended_[0].is);
  EXPECT_FALSE(ended_[1].is);
  clock_.Advance(5ms);
  EXPECT_EQ(device_.Advance(), TimePoint::Max());
  EXPECT_TRUE(ended_[1].is && ended_[2].is);
  EXPECT_EQ(read.data()[0], 7);
  EXPECT_EQ(device_.late(), 0u);
}

TEST_F(EmulatedDeviceTest, ASlowDeviceBelowMakesTheAnswerLateAndIsCounted) {
  below_->Stall();
  device_.ReadAsync(0, Buffer::Aligned(kBlockSize), Note());
  clock_.Advance(3ms);
  device_.Advance();
  EXPECT_FALSE(ended_[0].is);
  below_->ReleaseStalled();
  EXPECT_TRUE(ended_[0].is);
  EXPECT_EQ(device_.late(), 1u);
}

TEST_F(EmulatedDeviceTest, AnErrorOfTheDeviceBelowKeepsTheModelsTime) {
  below_->FailAt(0);
  device_.ReadAsync(0, Buffer::Aligned(kBlockSize), Note());
  device_.Advance();
  EXPECT_FALSE(ended_[0].is);
  clock_.Advance(1ms);
  device_.Advance();
  EXPECT_EQ(ended_[0].status.code(), ErrorCode::kIo);
}

// The kernel makes a thread like its parent for each write that it cannot do at once.
TEST(EmulatedDeviceThreadTest, WhatItsThreadStartsIsNoMoreUrgentThanOthers) {
  std::promise<int> policy;
  auto device = EmulatedDevice::Start(
      std::make_unique<MemDevice>(kSize),
      [](model::EventQueue* events) { return std::make_unique<OneByOne>(events); },
      SystemClock::Get(), {.name = "slow"});
  device->ReadAsync(0, Buffer::Aligned(kBlockSize), [&](const Status&) {
    std::thread([&] { policy.set_value(sched_getscheduler(0)); }).join();
  });
  EXPECT_EQ(policy.get_future().get(), SCHED_OTHER);
}

TEST(EmulatedDeviceThreadTest, SynchronousCallsFromManyThreadsEnd) {
  auto device = EmulatedDevice::Start(
      std::make_unique<MemDevice>(kSize),
      [](model::EventQueue* events) { return model::MakeSsd(events, model::Ssd200()); },
      SystemClock::Get(), {.name = "ssd"});
  std::vector<std::future<void>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      Buffer block = Buffer::AlignedZeros(kBlockSize);
      for (uint64_t i = 0; i < 50; ++i) {
        EXPECT_TRUE(device->Write((t * 64 + i) * kBlockSize, block).ok());
        EXPECT_TRUE(device->Read((t * 64 + i) * kBlockSize, block).ok());
        EXPECT_TRUE(device->Flush().ok());
      }
    }));
  }
  for (auto& thread : threads) thread.wait();
}

}  // namespace
}  // namespace weir
