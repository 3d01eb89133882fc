#include "common/disk/scratch_device.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weir
