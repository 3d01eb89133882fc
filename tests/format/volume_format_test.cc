// A raw volume, format 1: two superblocks, a journal with a table, a log and a removed file, the
// frames of the log. Ids are random per format, so the bytes are read and not made again.
#include <gtest/gtest.h>

#include <cstring>

#include "common/disk/mem_device.h"
#include "common/disk/raw_log.h"
#include "common/disk/raw_volume.h"
#include "tests/format/golden.h"

namespace weir {
namespace {

constexpr uint64_t kBytes = 4 << 20;
constexpr Region kWhole{0, kBytes};

std::string MakeVolume() {
  MemDevice device(kBytes);
  EXPECT_TRUE(RawVolume::Format(device, kWhole).ok());
  auto volume = *RawVolume::Mount(device, kWhole);
  const RawFilePtr table = volume->Create("/kv/000007.sst", false);
  EXPECT_TRUE(volume->Reserve(table, 100'000).ok());
  volume->SetSize(table, 70'001);
  const RawFilePtr gone = volume->Create("/kv/000003.sst", false);
  EXPECT_TRUE(volume->Reserve(gone, 1).ok());
  EXPECT_TRUE(volume->Commit().ok());
  EXPECT_TRUE(volume->Remove("/kv/000003.sst").ok());
  FrameWriter log(*volume, volume->Create("/kv/000008.log", true));
  EXPECT_TRUE(log.OpenAtEnd().ok());
  EXPECT_TRUE(log.Append("first ").ok());
  EXPECT_TRUE(log.Sync().ok());
  EXPECT_TRUE(log.Append("second").ok());
  EXPECT_TRUE(log.Sync().ok());
  const Buffer bytes = Buffer::Aligned(kBytes);
  EXPECT_TRUE(device.Read(0, bytes).ok());
  return std::string(bytes.view());
}

TEST(VolumeFormatTest, VolumeOfFormat1) {
  weir::testing::Golden golden("volume_v1.txt");
  const std::string shipped = golden.Shipped("volume", MakeVolume);
  ASSERT_EQ(shipped.size(), kBytes);
  MemDevice device(kBytes);
  const Buffer bytes = Buffer::Aligned(kBytes);
  std::memcpy(bytes.data(), shipped.data(), kBytes);
  ASSERT_TRUE(device.Write(0, bytes).ok());

  auto mounted = RawVolume::Mount(device, kWhole);
  ASSERT_TRUE(mounted.ok()) << mounted.status();
  RawVolume& volume = **mounted;
  EXPECT_EQ(volume.List("/kv/").size(), 2u);
  EXPECT_EQ(volume.Find("/kv/000003.sst"), nullptr);
  ASSERT_NE(volume.Find("/kv/000007.sst"), nullptr);
  EXPECT_EQ(volume.SizeOf(*volume.Find("/kv/000007.sst")), 70'001u);
  EXPECT_TRUE(volume.SpaceProblems().empty());
  FrameReader reader(volume, volume.Find("/kv/000008.log"));
  std::string text;
  std::string_view payload;
  while (*reader.Next(&payload)) text += payload;
  EXPECT_EQ(text, "first second");
}

}  // namespace
}  // namespace weir
