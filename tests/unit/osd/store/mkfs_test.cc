// What mkfs refuses, and what survives of a superblock.
#include <gtest/gtest.h>

#include "common/disk/faulty_device.h"
#include "common/disk/mem_device.h"
#include "osd/format/superblock_format.h"
#include "osd/store/object_store.h"
#include "osd/store/profile.h"

namespace weir::osd {
namespace {

using namespace std::string_view_literals;
constexpr uint64_t kBytes = 64 << 20;

void Put(BlockDevice& device, uint64_t offset, std::string_view bytes) {
  const uint64_t start = offset / kBlockSize * kBlockSize;
  Buffer block = Buffer::Aligned(kBlockSize);
  ASSERT_TRUE(device.Read(start, block).ok());
  std::memcpy(block.data() + (offset - start), bytes.data(), bytes.size());
  ASSERT_TRUE(device.Write(start, block).ok());
}

struct Foreign {
  const char* name;
  uint64_t offset;
  std::string_view magic;
};

TEST(MkfsTest, RefusesWhatItRecognisesAndNamesItUnlessForced) {
  const Foreign kinds[] = {
      {"ext2/3/4", 1080, "\x53\xef"sv},
      {"XFS", 0, "XFSB"sv},
      {"btrfs", 65600, "_BHRfS_M"sv},
      {"swap", 4086, "SWAPSPACE2"sv},
      {"LVM2", 512, "LABELONE"sv},
      {"LUKS", 0, "LUKS\xba\xbe"sv},
      {"md RAID", 4096, "\xfc\x4e\x2b\xa9"sv},
      {"md RAID", kBytes - 65536, "\xfc\x4e\x2b\xa9"sv},
      {"BlueStore", 0, "bluestore block device"sv},
      {"NTFS", 3, "NTFS    "sv},
      {"FAT", 82, "FAT32"sv},
      {"ISO 9660", 32769, "CD001"sv},
      {"GPT", 512, "EFI PART"sv},
      {"GPT", kBytes - 512, "EFI PART"sv},
      {"MBR", 510, "\x55\xaa"sv},
      {"ZFS", 131072, "\x0c\xb1\xba\0\0\0\0\0"sv},
  };
  for (const Foreign& kind : kinds) {
    MemDevice device(kBytes);
    Put(device, kind.offset, kind.magic);
    const Status status = MakeStore(device, {});
    EXPECT_EQ(status.code(), ErrorCode::kExists) << kind.name;
    EXPECT_NE(status.message().find(kind.name), std::string::npos) << status;
    EXPECT_EQ(ReadIdentity(device).code(), ErrorCode::kInvalid);
    EXPECT_TRUE(MakeStore(device, {.force = true}).ok());
    EXPECT_TRUE(ReadIdentity(device).ok());
  }
}

TEST(MkfsTest, ATierKeepsItsNameAndPlace) {
  MemDevice device(kBytes);
  MkfsOptions options;
  options.identity = {"cluster", "osd", 3, 1000, "hdd", 1, 2};
  ASSERT_TRUE(MakeStore(device, options).ok());
  const Result<OsdIdentity> found = ReadIdentity(device);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->tier, "hdd");
  EXPECT_EQ(found->tier_index, 1u);
  EXPECT_EQ(found->tiers, 2u);
  EXPECT_EQ(found->token_rate, 1000u);
}

TEST(MkfsTest, RefusesAnotherOsdAndNamesIt) {
  MemDevice device(kBytes);
  const OsdIdentity identity{.cluster_uuid = "cluster-a", .osd_uuid = "osd-a", .osd_id = 7};
  ASSERT_TRUE(MakeStore(device, {.identity = identity}).ok());
  const Status status = MakeStore(device, {});
  EXPECT_EQ(status.code(), ErrorCode::kExists);
  EXPECT_NE(status.message().find("osd.7"), std::string::npos) << status;
  EXPECT_NE(status.message().find("cluster-a"), std::string::npos) << status;
  // Also with one superblock gone, and with both damaged but recognisable.
  Put(device, 100, "damage");
  EXPECT_EQ(ReadIdentity(device)->osd_id, 7u);
  Put(device, kSuperOffsets[1] + 100, "damage");
  EXPECT_EQ(ReadIdentity(device).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(MakeStore(device, {}).code(), ErrorCode::kExists);
}

// Goal: a first MiB that is gone does not make a disk look new.
TEST(MkfsTest, RefusesAnOsdThatLostItsHead) {
  MemDevice device(kBytes);
  ASSERT_TRUE(MakeStore(device, {.identity = {.cluster_uuid = "c", .osd_uuid = "o"}}).ok());
  ASSERT_TRUE(ZeroRange(device, 0, kHeadBytes).ok());
  EXPECT_EQ(ReadIdentity(device).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(MakeStore(device, {}).code(), ErrorCode::kExists);
  EXPECT_TRUE(MakeStore(device, {.force = true}).ok());
}

// Goal: a format that is cut short is known as one, whatever it had written. Method: stop at each
// write; then the disk is new, or of an OSD of no cluster, until the last superblock is there.
TEST(MkfsTest, AnInterruptedFormatIsKnownAsOne) {
  for (uint64_t writes = 0;; ++writes) {
    FaultyDevice device(std::make_unique<MemDevice>(kBytes));
    device.PowerLossAt(writes);
    const OsdIdentity identity{.cluster_uuid = "c", .osd_uuid = "o"};
    const bool done = MakeStore(device, {.identity = identity}).ok();
    device.PowerOn(writes);
    const auto found = ReadIdentity(device);
    if (done) {
      EXPECT_EQ(found->cluster_uuid, "c");
      break;
    }
    EXPECT_TRUE(found.ok() ? found->osd_uuid == "o" : found.code() == ErrorCode::kInvalid)
        << writes << " " << found.status();
  }
}

TEST(MkfsTest, KeepsAChangedIdentityInTheNewestSuperblock) {
  MemDevice device(kBytes);
  ASSERT_TRUE(MakeStore(device, {.identity = {.cluster_uuid = "c", .osd_id = 1}}).ok());
  OsdIdentity identity = *ReadIdentity(device);
  identity.token_rate = 123 << 20;
  ASSERT_TRUE(UpdateIdentity(device, identity).ok());
  EXPECT_EQ(ReadIdentity(device)->token_rate, 123u << 20);
  EXPECT_EQ(ReadIdentity(device)->cluster_uuid, "c");
}

TEST(MkfsTest, RefusesTooSmallDevicesTooLongNamesAndEmptyDisks) {
  MemDevice small(kMinDeviceBytes - kBlockSize);
  EXPECT_EQ(MakeStore(small, {}).code(), ErrorCode::kInvalid);
  MemDevice device(kBytes);
  EXPECT_EQ(MakeStore(device, {.identity = {.cluster_uuid = std::string(48, 'x')}}).code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(ReadIdentity(device).code(), ErrorCode::kInvalid);
  EXPECT_EQ(OpenStore(device, {}).code(), ErrorCode::kInvalid);
}

TEST(MkfsTest, APromiseIsTheSlowestTwentiethAndSaysWhenTheMachineWasBusy) {
  const Duration window = std::chrono::milliseconds(50);
  std::vector<uint64_t> windows(18, 10 << 20);
  windows[7] = 9 << 20;
  EXPECT_EQ(ProfileOf(windows, window).rate, 180u << 20);
  EXPECT_TRUE(ProfileOf(windows, window).steady);
  windows[3] = 0;
  EXPECT_EQ(ProfileOf(windows, window).rate, 1u << 20);
  EXPECT_FALSE(ProfileOf(windows, window).steady);
}

TEST(MkfsTest, ProfileMeasuresAnEmptyOsdAndRefusesAFullOne) {
  MemDevice device(kBytes);
  ASSERT_TRUE(MakeStore(device, {}).ok());
  const Result<uint64_t> rate = ProfileDevice(device);
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_GE(*rate, 1u << 20);
  EXPECT_EQ(*rate % (1 << 20), 0u);
}

}  // namespace
}  // namespace weir::osd
