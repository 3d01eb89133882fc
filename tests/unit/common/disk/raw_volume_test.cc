#include "common/disk/raw_volume.h"

#include <gtest/gtest.h>

#include "common/disk/mem_device.h"

namespace weir {
namespace {

constexpr uint64_t kRegion = 64 << 20;

// Where the first bytes of a log and of a table lie, in units of a fresh volume.
struct Places {
  uint32_t log, table, units;
};
Places PlacesOn(bool rotational) {
  MemDevice device(kRegion, "mem", rotational);
  EXPECT_TRUE(RawVolume::Format(device, {0, kRegion}).ok());
  auto volume = RawVolume::Mount(device, {0, kRegion});
  EXPECT_TRUE(volume.ok());
  const RawFilePtr log = (*volume)->Create("1.log", true);
  const RawFilePtr table = (*volume)->Create("2.sst", false);
  EXPECT_TRUE((*volume)->Reserve(log, 100'000).ok());
  EXPECT_TRUE((*volume)->Reserve(table, 1'000'000).ok());
  EXPECT_EQ(log->extents.size(), 1u);
  EXPECT_EQ(table->extents.size(), 1u);
  const uint64_t units =
      (*volume)->total_bytes() * log->extents[0].count / (*volume)->CapacityOf(*log);
  return {log->extents[0].unit, table->extents[0].unit, static_cast<uint32_t>(units)};
}

TEST(RawVolumeTest, LogsLieBesideTheDataWhereAHeadGoesBetweenThem) {
  const Places places = PlacesOn(true);
  EXPECT_EQ(places.table, 0u);
  EXPECT_GT(places.log, places.units / 4 * 3);
}

TEST(RawVolumeTest, LogsLieWhereAnImageWasWrittenToElsewhere) {
  const Places places = PlacesOn(false);
  EXPECT_EQ(places.log, 0u);
  EXPECT_GT(places.table, places.units / 4 * 3);
}

void Wipe(BlockDevice& device, uint64_t offset) {
  ASSERT_TRUE(device.Write(offset, Buffer::AlignedZeros(kBlockSize)).ok());
}

// Three records: the snapshot of the format, and two commits.
void FillJournal(BlockDevice& device) {
  ASSERT_TRUE(RawVolume::Format(device, {0, kRegion}).ok());
  auto volume = RawVolume::Mount(device, {0, kRegion});
  ASSERT_TRUE(volume.ok());
  for (const char* name : {"1.sst", "2.sst"}) {
    (*volume)->Create(name, false);
    ASSERT_TRUE((*volume)->Commit().ok());
  }
}

// Goal: what a power loss tears off is dropped, what is damaged is not taken for that.
TEST(RawVolumeTest, ARecordThatIsMissingBeforeOthersIsDamage) {
  MemDevice torn(kRegion);
  FillJournal(torn);
  Wipe(torn, raw::kJournalStart + 2 * kBlockSize);
  auto volume = RawVolume::Mount(torn, {0, kRegion});
  ASSERT_TRUE(volume.ok()) << volume.status();
  EXPECT_EQ((*volume)->List("").size(), 1u);
  for (const uint64_t record : {0, 1}) {
    MemDevice damaged(kRegion);
    FillJournal(damaged);
    Wipe(damaged, raw::kJournalStart + record * kBlockSize);
    EXPECT_EQ(RawVolume::Mount(damaged, {0, kRegion}).code(), ErrorCode::kCorrupt) << record;
  }
}

// Goal: the older superblock is no way back to a state that was left.
TEST(RawVolumeTest, ALostSuperblockIsDamageUnlessItWasNeverInForce) {
  MemDevice device(kRegion);
  FillJournal(device);
  Wipe(device, 0);  // both are of the format
  {
    auto volume = RawVolume::Mount(device, {0, kRegion});
    ASSERT_TRUE(volume.ok()) << volume.status();
    for (int i = 0; i < 1000; ++i) {  // through both halves of the journal
      (*volume)->Create("file", false);
      ASSERT_TRUE((*volume)->Commit().ok());
    }
  }
  ASSERT_TRUE(RawVolume::Mount(device, {0, kRegion}).ok());
  int refused = 0;
  for (const uint64_t copy : {0, 1}) {
    Buffer kept = Buffer::Aligned(kBlockSize);
    ASSERT_TRUE(device.Read(copy * kBlockSize, kept).ok());
    Wipe(device, copy * kBlockSize);
    refused += RawVolume::Mount(device, {0, kRegion}).code() == ErrorCode::kCorrupt ? 1 : 0;
    ASSERT_TRUE(device.Write(copy * kBlockSize, kept).ok());
  }
  EXPECT_EQ(refused, 1);
}

TEST(RawVolumeTest, ARegionThatWasCutOffIsNamedAsSuch) {
  MemDevice device(kRegion);
  FillJournal(device);
  const auto cut = RawVolume::Mount(device, {0, kRegion / 2});
  EXPECT_EQ(cut.code(), ErrorCode::kCorrupt);
  EXPECT_NE(cut.status().message().find("cut off"), std::string::npos) << cut.status();
}

}  // namespace
}  // namespace weir
