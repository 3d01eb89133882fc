#include "osd/store/write_gatherer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/disk/faulty_device.h"
#include "common/disk/mem_device.h"

namespace weir::osd {
namespace {

Buffer Filled(uint8_t byte, size_t blocks = 1) {
  Buffer buffer = Buffer::Aligned(blocks * kBlockSize);
  std::memset(buffer.data(), byte, buffer.size());
  return buffer;
}

// While the device holds back the first write, the others gather.
class WriteGathererTest : public ::testing::Test {
 protected:
  void Write(uint64_t block, uint8_t byte, size_t blocks = 1) {
    writes_.Write(block * kBlockSize, Filled(byte, blocks), [this](const Status& status) {
      ++done_;
      if (!status.ok()) ++failed_;
    });
  }
  uint8_t At(uint64_t block) {
    Buffer buffer = Buffer::Aligned(kBlockSize);
    EXPECT_TRUE(device_.Read(block * kBlockSize, buffer).ok());
    return buffer.data()[kBlockSize - 1];
  }

  FaultyDevice device_{std::make_unique<MemDevice>(16 << 20)};
  WriteGatherer writes_{device_};
  int done_ = 0, failed_ = 0;
};

TEST_F(WriteGathererTest, ALoneWriteGoesOutAtOnce) {
  Write(3, 7);
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(At(3), 7);
}

TEST_F(WriteGathererTest, NeighboursThatWaitedAreOneWrite) {
  device_.Stall();
  Write(0, 1);
  for (const uint64_t block : {12, 10, 11, 20}) Write(block, static_cast<uint8_t>(block));
  EXPECT_EQ(device_.counters().writes, 1u);
  device_.ReleaseStalled();
  EXPECT_EQ(done_, 5);
  EXPECT_EQ(device_.counters().writes, 3u);  // the first, 10 to 12, 20
  for (const uint64_t block : {10, 11, 12, 20}) EXPECT_EQ(At(block), block);
}

TEST_F(WriteGathererTest, LargeWritesDoNotWait) {
  device_.Stall();
  Write(0, 1);
  Write(100, 2, 2 * WriteGatherer::kSmallMax / kBlockSize);
  EXPECT_EQ(device_.counters().writes, 2u);
  device_.ReleaseStalled();
  EXPECT_EQ(done_, 2);
}

TEST_F(WriteGathererTest, ARunIsBounded) {
  constexpr uint64_t kBlocks = 3 * WriteGatherer::kRunMax / kBlockSize;
  device_.Stall();
  Write(1000, 1);
  for (uint64_t block = 0; block < kBlocks; ++block) Write(block, 5);
  device_.ReleaseStalled();
  EXPECT_EQ(device_.counters().writes, 4u);
  EXPECT_EQ(done_, static_cast<int>(kBlocks) + 1);
}

TEST_F(WriteGathererTest, AnErrorReachesAllThatWereJoinedAndTheNextGoOn) {
  device_.Stall();
  Write(0, 1);
  Write(10, 2);
  Write(11, 3);
  device_.FailAt(1);
  device_.ReleaseStalled();
  EXPECT_EQ(done_, 3);
  EXPECT_EQ(failed_, 2);
  device_.ClearFaults();
  Write(12, 4);
  EXPECT_EQ(done_, 4);
  EXPECT_EQ(failed_, 2);
}

}  // namespace
}  // namespace weir::osd
