#include "common/disk/scratch_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/disk/mem_device.h"

namespace weir {
namespace {

Buffer Blocks(size_t count, char fill) {
  Buffer buffer = Buffer::Aligned(count * kBlockSize);
  std::memset(buffer.data(), fill, buffer.size());
  return buffer;
}

TEST(ScratchDeviceTest, ShowsWhatWasWrittenAndLeavesTheDeviceBelowAlone) {
  MemDevice below(1 << 20);
  ASSERT_TRUE(below.Write(0, Blocks(4, 'a')).ok());
  ScratchDevice scratch(below);
  ASSERT_TRUE(scratch.Write(kBlockSize, Blocks(2, 'b')).ok());
  ASSERT_TRUE(scratch.Write(2 * kBlockSize, Blocks(1, 'c')).ok());
  const Buffer seen = Buffer::Aligned(4 * kBlockSize);
  ASSERT_TRUE(scratch.Read(0, seen).ok());
  EXPECT_EQ(seen.view()[0], 'a');
  EXPECT_EQ(seen.view()[kBlockSize], 'b');
  EXPECT_EQ(seen.view()[2 * kBlockSize], 'c');
  EXPECT_EQ(seen.view()[3 * kBlockSize], 'a');
  ASSERT_TRUE(below.Read(0, seen).ok());
  EXPECT_EQ(seen.view(), Blocks(4, 'a').view());
}

// Goal: what is kept is what was done, and a power loss within Keep leaves what one within the
// original would have. Method: the device below sees the same writes and flushes in their order.
TEST(ScratchDeviceTest, KeepsEverythingInItsOrderAndIsTheDeviceBelowFromThenOn) {
  MemDevice below(1 << 20);
  ScratchDevice scratch(below);
  Buffer again = Blocks(1, 'x');
  ASSERT_TRUE(scratch.Write(0, again).ok());
  std::memset(again.data(), 'y', again.size());  // the caller's buffer is the caller's
  ASSERT_TRUE(scratch.Flush().ok());
  ASSERT_TRUE(scratch.Write(kBlockSize, again).ok());
  EXPECT_EQ(below.counters().writes, 0u);
  ASSERT_TRUE(scratch.Keep().ok());
  EXPECT_EQ(below.counters().writes, 2u);
  EXPECT_EQ(below.counters().flushes, 1u);
  EXPECT_EQ(below.durable_writes(), 1u);
  const Buffer seen = Buffer::Aligned(2 * kBlockSize);
  ASSERT_TRUE(below.Read(0, seen).ok());
  EXPECT_EQ(seen.view()[0], 'x');
  EXPECT_EQ(seen.view()[kBlockSize], 'y');
  ASSERT_TRUE(scratch.Write(0, Blocks(1, 'z')).ok());
  ASSERT_TRUE(below.Read(0, seen).ok());
  EXPECT_EQ(seen.view()[0], 'z');
}

TEST(ScratchDeviceTest, GrowsWithItsImage) {
  const std::string path = ::testing::TempDir() + "/weir_scratch." + std::to_string(getpid());
  ASSERT_TRUE(CreateImage(path, 4 * kBlockSize).ok());
  auto below = OpenDevice(path, {});
  ASSERT_TRUE(below.ok()) << below.status();
  ScratchDevice scratch(**below);
  ASSERT_TRUE(scratch.Grow(8 * kBlockSize).ok());
  ASSERT_TRUE(scratch.Write(7 * kBlockSize, Blocks(1, 'w')).ok());
  const Buffer seen = Buffer::Aligned(8 * kBlockSize);
  std::memset(seen.data(), '?', seen.size());
  ASSERT_TRUE(scratch.Read(0, seen).ok());
  EXPECT_EQ(seen.view()[5 * kBlockSize], '\0');
  EXPECT_EQ(seen.view()[7 * kBlockSize], 'w');
  EXPECT_EQ((*below)->size(), 4 * kBlockSize);
  ASSERT_TRUE(scratch.Keep().ok());
  EXPECT_EQ((*below)->size(), 8 * kBlockSize);
  ASSERT_TRUE((*below)->Read(0, seen).ok());
  EXPECT_EQ(seen.view()[7 * kBlockSize], 'w');
  unlink(path.c_str());
}

}  // namespace
}  // namespace weir
