#include "common/disk/block_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "common/base/prng.h"
#include "common/disk/faulty_device.h"

namespace weir {
namespace {

Buffer Filled(size_t size, uint8_t byte) {
  Buffer buffer = Buffer::Aligned(size);
  std::memset(buffer.data(), byte, size);
  return buffer;
}

uint8_t FirstByte(BlockDevice& device, uint64_t offset) {
  Buffer buffer = Buffer::Aligned(kBlockSize);
  WEIR_CHECK(device.Read(offset, buffer).ok());
  return buffer.data()[0];
}

class ImageTest : public ::testing::Test {
 protected:
  ~ImageTest() override { std::filesystem::remove(path_); }
  // In the working directory: temporary directories may not know O_DIRECT.
  const std::string path_ = "weir_image_" + std::to_string(RandomSeed());
};

TEST_F(ImageTest, UringReadsWhatItWroteSynchronouslyAndNot) {
  ASSERT_TRUE(CreateImage(path_, 1 << 20).ok());
  EXPECT_EQ(CreateImage(path_, 1 << 20).code(), ErrorCode::kExists);
  auto device = OpenDevice(path_, {});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_TRUE((*device)->is_image());
  std::vector<std::future<void>> writes;
  for (uint8_t i = 0; i < 64; ++i) {
    auto promise = std::make_shared<std::promise<void>>();
    writes.push_back(promise->get_future());
    (*device)->WriteAsync(i * 4 * kBlockSize, Filled(4 * kBlockSize, i), [promise](Status status) {
      EXPECT_TRUE(status.ok());
      promise->set_value();
    });
  }
  for (auto& write : writes) write.wait();
  ASSERT_TRUE((*device)->Flush().ok());
  for (uint8_t i = 0; i < 64; ++i) EXPECT_EQ(FirstByte(**device, (i * 4 + 3) * kBlockSize), i);
  EXPECT_EQ((*device)->counters().writes, 64u);
  EXPECT_EQ((*device)->counters().flushes, 1u);
}

// By AIO and by the ring.
TEST_F(ImageTest, AnswersSmallAndLargeReadsAndThoseBehindTheEndOfTheFile) {
  ASSERT_TRUE(CreateImage(path_, 1 << 20).ok());
  auto device = OpenDevice(path_, {});
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_TRUE((*device)->Write(0, Filled(1 << 20, 7)).ok());
  const auto read = [&](size_t size) {
    const Buffer to = Buffer::AlignedZeros(size);
    std::promise<Status> answer;
    (*device)->ReadAsync((1 << 20) - size, to, [&](Status status) { answer.set_value(status); });
    const Status status = answer.get_future().get();
    return std::pair(status.code(), to.data()[size - 1]);
  };
  for (const size_t size : {4 << 10, 64 << 10, 256 << 10}) {
    EXPECT_EQ(read(size), std::pair(ErrorCode::kOk, uint8_t{7})) << size;
  }
  std::filesystem::resize_file(path_, 512 << 10);
  for (const size_t size : {4 << 10, 256 << 10}) EXPECT_EQ(read(size).first, ErrorCode::kIo);
}

// An emulated disk in memory would else wait for a thread of the kernel, and be late.
TEST_F(ImageTest, WhatATmpfsHasIsReadInTheCallingThread) {
  const std::string path = "/dev/shm/" + path_;
  if (!CreateImage(path, 1 << 20).ok()) GTEST_SKIP() << "no room in /dev/shm";
  auto device = OpenDevice(path, {.direct = false});
  std::filesystem::remove(path);
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_TRUE((*device)->Write(4 * kBlockSize, Filled(kBlockSize, 7)).ok());
  const Buffer to = Buffer::AlignedZeros(kBlockSize);
  std::thread::id where;
  std::promise<void> answered;
  (*device)->ReadAsync(4 * kBlockSize, to, [&](const Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    where = std::this_thread::get_id();
    answered.set_value();
  });
  answered.get_future().get();
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_EQ(to.data()[0], 7);
}

TEST_F(ImageTest, GrowsAndKeepsWhatItHas) {
  ASSERT_TRUE(CreateImage(path_, 1 << 20).ok());
  {
    auto device = OpenDevice(path_, {});
    ASSERT_TRUE(device.ok()) << device.status();
    ASSERT_TRUE((*device)->Write((1 << 20) - kBlockSize, Filled(kBlockSize, 7)).ok());
    ASSERT_TRUE((*device)->Grow(2 << 20).ok());
    ASSERT_TRUE((*device)->Grow(1 << 20).ok());  // is larger already
    EXPECT_EQ((*device)->size(), 2u << 20);
    ASSERT_TRUE((*device)->Write((2 << 20) - kBlockSize, Filled(kBlockSize, 9)).ok());
  }
  auto device = OpenDevice(path_, {});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->size(), 2u << 20);
  EXPECT_EQ(FirstByte(**device, (1 << 20) - kBlockSize), 7);
  EXPECT_EQ(FirstByte(**device, 1 << 20), 0);
  EXPECT_EQ(FirstByte(**device, (2 << 20) - kBlockSize), 9);
}

TEST_F(ImageTest, SaysThatItCannotGrowAndStaysAsItWas) {
  ASSERT_TRUE(CreateImage(path_, 1 << 20).ok());
  auto device = OpenDevice(path_, {});
  ASSERT_TRUE(device.ok()) << device.status();
  const Status status = (*device)->Grow(uint64_t{1} << 60);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(path_), std::string::npos) << status;
  EXPECT_EQ((*device)->size(), 1u << 20);
  EXPECT_EQ(std::filesystem::file_size(path_), 1u << 20);
}

TEST_F(ImageTest, RefusesWhatItCannotUse) {
  EXPECT_EQ(OpenDevice(path_, {}).code(), ErrorCode::kNotFound);
  std::ofstream(path_) << "not a multiple of 4096";
  EXPECT_EQ(OpenDevice(path_, {}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(OpenDevice("/dev/null", {}).code(), ErrorCode::kInvalid);
  std::filesystem::resize_file(path_, 1 << 20);
  auto first = OpenDevice(path_, {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(OpenDevice(path_, {}).code(), ErrorCode::kBusy);
  first->reset();
  EXPECT_TRUE(OpenDevice(path_, {}).ok());
}

TEST(BlockDeviceTest, RefusesUnalignedAndOutsideRequestsBeforeAnyIo) {
  MemDevice device(1 << 20);
  EXPECT_EQ(device.Read(1, Buffer::Aligned(4096)).code(), ErrorCode::kInvalid);
  EXPECT_EQ(device.Read(0, Buffer::Aligned(100)).code(), ErrorCode::kInvalid);
  EXPECT_EQ(device.Write(1 << 20, Buffer::Aligned(4096)).code(), ErrorCode::kInvalid);
  EXPECT_EQ(device.Write(0, Buffer::Aligned(8192).Slice(1, 4096)).code(), ErrorCode::kInvalid);
  EXPECT_EQ(device.counters().errors, 4u);
  EXPECT_EQ(device.counters().reads, 0u);
}

TEST(FaultyDeviceTest, FlushedBytesSurviveAndUnflushedAreOldNewOrTorn) {
  bool old_seen = false, new_seen = false, torn_seen = false;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    FaultyDevice device(std::make_unique<MemDevice>(1 << 20));
    ASSERT_TRUE(device.Write(0, Filled(4096, 1)).ok());
    ASSERT_TRUE(device.Write(4096, Filled(4096, 1)).ok());
    ASSERT_TRUE(device.Flush().ok());
    ASSERT_TRUE(device.Write(4096, Filled(4096, 2)).ok());
    EXPECT_EQ(FirstByte(device, 4096), 2);
    device.PowerLossAt(0);
    EXPECT_EQ(device.Write(0, Filled(4096, 9)).code(), ErrorCode::kIo);
    device.PowerOn(seed);
    EXPECT_EQ(FirstByte(device, 0), 1);
    Buffer block = Buffer::Aligned(4096);
    ASSERT_TRUE(device.Read(4096, block).ok());
    const auto twos = std::count(block.data(), block.data() + 4096, 2);
    EXPECT_EQ(twos + std::count(block.data(), block.data() + 4096, 1), 4096);
    EXPECT_EQ(twos % 512, 0);
    old_seen |= twos == 0;
    new_seen |= twos == 4096;
    torn_seen |= twos != 0 && twos != 4096;
  }
  EXPECT_TRUE(old_seen && new_seen && torn_seen);
}

TEST(BlockDeviceTest, AWriteIsDurableOnceAFlushThatBeganLaterEnds) {
  FaultyDevice device(std::make_unique<MemDevice>(1 << 20));
  const auto write = [&device] {
    ASSERT_TRUE(device.Write(0, Buffer::AlignedZeros(kBlockSize)).ok());
  };
  write();
  EXPECT_EQ(device.completed_writes(), 1u);
  EXPECT_EQ(device.durable_writes(), 0u);
  ASSERT_TRUE(device.Flush().ok());
  EXPECT_EQ(device.durable_writes(), 1u);

  device.Stall();
  device.FlushAsync([](const Status&) {});
  device.WriteAsync(0, Buffer::AlignedZeros(kBlockSize), [](const Status&) {});
  device.ReleaseStalled();  // both are complete, but the flush began before the write was
  EXPECT_EQ(device.completed_writes(), 2u);
  EXPECT_EQ(device.durable_writes(), 1u);

  device.FailAt(0);
  EXPECT_FALSE(device.Flush().ok());
  EXPECT_TRUE(device.flush_failed());
  device.ClearFaults();
  ASSERT_TRUE(device.Flush().ok());
  EXPECT_EQ(device.durable_writes(), 1u) << "what a failed flush lost, no later one brings back";
}

TEST(FaultyDeviceTest, StallsUntilReleasedAndFailsTheNthRequest) {
  FaultyDevice device(std::make_unique<MemDevice>(1 << 20));
  device.Stall();
  int done = 0;
  device.WriteAsync(0, Filled(4096, 1), [&](Status) { ++done; });
  EXPECT_EQ(done, 0);
  EXPECT_EQ(device.stalled(), 1u);
  device.ReleaseStalled();
  EXPECT_EQ(done, 1);
  device.FailAt(1, 2);
  EXPECT_TRUE(device.Flush().ok());
  EXPECT_EQ(device.Flush().code(), ErrorCode::kIo);
  EXPECT_TRUE(device.Flush().ok());
  EXPECT_EQ(device.Flush().code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace weir
