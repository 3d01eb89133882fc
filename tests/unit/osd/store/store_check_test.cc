// Each kind of damage is found, named and, where that loses nothing, repaired; the disk is not
// touched otherwise.
#include "osd/store/store_check.h"

#include <gtest/gtest.h>

#include "common/disk/mem_device.h"
#include "common/kv/rocks_kv_store.h"
#include "osd/format/onode_format.h"
#include "osd/store/superblock.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

constexpr uint64_t kBytes = 64 << 20;
constexpr ObjectId kLarge{InodeId(5), 0}, kOther{InodeId(6), 1};

class StoreCheckTest : public ::testing::Test {
 protected:
  // Two objects, all blocks at their places: 0 to 24 of the large one, 0 of the other.
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device, {.identity = {.cluster_uuid = "c", .osd_id = 3}}).ok());
    super = *LoadSuperblock(device);
    Prng prng(1);
    auto store = *OpenStore(device, {});
    ASSERT_TRUE(
        testing::WriteSync(*store, kLarge, 0, testing::RandomBytes(prng, 25 * kBlockSize)).ok());
    ASSERT_TRUE(testing::WriteSync(*store, kOther, 0, testing::RandomBytes(prng, 100)).ok());
    ASSERT_TRUE(store->Close().ok());
  }

  CheckReport Check(const CheckOptions& options = {.deep = true}) {
    Result<CheckReport> report = CheckStore(device, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : CheckReport();
  }
  void ExpectOnly(const std::string& kind, uint64_t count) {
    const CheckReport report = Check();
    EXPECT_EQ(report.findings.found(), count) << ToText(report);
    EXPECT_EQ(report.findings.CountOf(kind), count) << ToText(report);
  }
  void Change(const WriteBatch& batch) {
    auto kv = *OpenRawKvStore(device, {super.kv_offset, super.kv_bytes}, {});
    ASSERT_TRUE(kv->Apply(batch, Durability::kDurable).ok());
  }
  std::string Stored(const std::string& key) {
    auto kv = *OpenRawKvStore(device, {super.kv_offset, super.kv_bytes}, {});
    return *kv->Get(key);
  }
  std::vector<BlockRef> BlocksOf(ObjectId id) {
    std::vector<BlockRef> refs(kBlocksPerShard);
    EXPECT_TRUE(DecodeShard(Stored(ShardKey(id, 0)), refs, nullptr).ok());
    return refs;
  }
  void PutBlocks(ObjectId id, const std::vector<BlockRef>& refs) {
    WriteBatch batch;
    batch.Put(ShardKey(id, 0), EncodeShard(refs));
    Change(batch);
  }
  void FlipByte(uint64_t offset) {
    const uint64_t start = offset / kBlockSize * kBlockSize;
    Buffer block = Buffer::Aligned(kBlockSize);
    ASSERT_TRUE(device.Read(start, block).ok());
    block.data()[offset - start] ^= 0x40;
    ASSERT_TRUE(device.Write(start, block).ok());
  }

  MemDevice device{kBytes};
  Superblock super{};
};

TEST_F(StoreCheckTest, CleanDiskIsCleanAndNotWrittenTo) {
  const uint64_t writes = device.counters().writes;
  const CheckReport report = Check();
  EXPECT_TRUE(report.findings.clean()) << ToText(report);
  EXPECT_EQ(report.Fact("objects"), 2u);
  EXPECT_EQ(report.Fact("used_bytes"), 26 * kBlockSize);
  EXPECT_EQ(report.Fact("verified_bytes"), 26 * kBlockSize);
  EXPECT_EQ(device.counters().writes, writes);
}

TEST_F(StoreCheckTest, DamagedSuperblockCopyIsFoundAndRepairedFromTheOther) {
  FlipByte(kSuperOffsets[0] + 70);
  ExpectOnly("superblock", 1);
  EXPECT_TRUE(Check({.repair = true}).findings.clean());
  EXPECT_EQ(Check().findings.found(), 0u);
}

TEST_F(StoreCheckTest, BitRotIsFoundByADeepCheckOnly) {
  FlipByte(uint64_t{BlocksOf(kLarge)[7].place} * kBlockSize + 5);
  EXPECT_TRUE(Check({}).findings.clean());
  ExpectOnly("checksum", 1);
}

TEST_F(StoreCheckTest, BlockOfTwoObjectsIsFoundAndBothAreNamed) {
  std::vector<BlockRef> refs = BlocksOf(kOther);
  refs[0].place = BlocksOf(kLarge)[3].place;
  PutBlocks(kOther, refs);
  const CheckReport report = Check({});
  ASSERT_EQ(report.findings.CountOf("double-use"), 1u) << ToText(report);
  const std::string& text = report.findings.listed().front().text;
  EXPECT_NE(text.find("object 5.0 block 3"), std::string::npos) << text;
  EXPECT_NE(text.find("object 6.1 block 0"), std::string::npos) << text;
}

TEST_F(StoreCheckTest, BlockOutsideOfTheDataRegionIsFound) {
  std::vector<BlockRef> refs = BlocksOf(kOther);
  refs[0].place = 1;
  PutBlocks(kOther, refs);
  ExpectOnly("outside", 1);
}

TEST_F(StoreCheckTest, RecordsWithoutAnObjectAreLeaksAndRepairFreesThem) {
  WriteBatch batch;
  batch.Delete(HeadKey(kLarge));
  batch.Put(OverlayKey({InodeId(99), 0}, 4), EncodeOverlay(1, std::string(kBlockSize, 'x')));
  Change(batch);
  ExpectOnly("leak", 2);
  EXPECT_EQ(Check().Fact("leaked_bytes"), 26 * kBlockSize);
  EXPECT_TRUE(Check({.repair = true}).findings.clean());
  const CheckReport after = Check();
  EXPECT_EQ(after.findings.found(), 0u) << ToText(after);
  EXPECT_EQ(after.Fact("used_bytes"), kBlockSize);
}

TEST_F(StoreCheckTest, MissingExtentMapIsLostAndNotRepaired) {
  WriteBatch batch;
  batch.Delete(ShardKey(kLarge, 0));
  Change(batch);
  ExpectOnly("lost", 1);
  EXPECT_FALSE(Check({.repair = true}).findings.clean());
}

TEST_F(StoreCheckTest, WhatLiesBehindTheEndIsFound) {
  WriteBatch batch;
  OnodeHead head = *DecodeHead(Stored(HeadKey(kLarge)));
  head.size = 24 * kBlockSize + 1;  // the last byte but one of the last block is not zero
  batch.Put(HeadKey(kLarge), EncodeHead(head));
  Change(batch);
  ExpectOnly("behind-end", 1);
  head.size = 20 * kBlockSize;
  batch.Put(HeadKey(kLarge), EncodeHead(head));
  Change(batch);
  EXPECT_EQ(Check({}).findings.CountOf("behind-end"), 5u);
}

TEST_F(StoreCheckTest, RecordsThatDoNotDecodeOrCannotBeAreFound) {
  WriteBatch batch;
  batch.Put(HeadKey(kOther), "short");
  batch.Put("Znobody", "");
  Change(batch);
  ExpectOnly("record", 2);
  OnodeHead head = *DecodeHead(Stored(HeadKey(kLarge)));
  head.version.sequence = uint64_t{1} << 60;
  batch.Clear();
  batch.Put(HeadKey(kLarge), EncodeHead(head));
  Change(batch);
  ExpectOnly("record", 3);
}

// Goal: what the index of a slot says wrongly is found, and made right from the heads.
TEST_F(StoreCheckTest, AnIndexThatDisagreesWithTheHeadsIsFoundAndRepaired) {
  constexpr SlotId kSlot{1, 7};
  OnodeHead head = *DecodeHead(Stored(HeadKey(kLarge)));
  head.slot = kSlot;
  WriteBatch batch;
  batch.Put(HeadKey(kLarge), EncodeHead(head));                         // not listed
  batch.Put(IndexKey(kSlot, kOther), EncodeVersion({0, 1}));            // of no slot
  batch.Put(IndexKey(kSlot, {InodeId(99), 0}), EncodeVersion({0, 1}));  // not there
  Change(batch);
  ExpectOnly("index", 3);
  EXPECT_EQ(Check({.repair = true}).findings.CountOf("index"), 3u);
  EXPECT_TRUE(Check().findings.clean());
  EXPECT_EQ(*DecodeVersion(Stored(IndexKey(kSlot, kLarge))), head.version);
  batch.Clear();
  batch.Put(IndexKey(kSlot, kLarge), EncodeVersion({9, 9}));
  Change(batch);
  ExpectOnly("index", 1);
}

TEST_F(StoreCheckTest, OpIdsAndTombstonesThatNobodyNeedsAreLeaks) {
  const ObjectId gone{InodeId(98), 0};
  WriteBatch batch;
  batch.Put(OpIdsKey({InodeId(99), 0}, 1), EncodeOpIds({}));
  batch.Put(HeadKey(gone), EncodeHead({.tombstone = true}));
  batch.Put(OpIdsKey(kLarge, 1), EncodeOpIds({}));
  Change(batch);
  ExpectOnly("leak", 2);
  EXPECT_EQ(Check().Fact("objects"), 2u);
  EXPECT_EQ(Check({.repair = true}).findings.CountOf("leak"), 2u);
  EXPECT_TRUE(Check().findings.clean());
}

TEST_F(StoreCheckTest, FloorsAndOpIdsThatDoNotDecodeAreFound) {
  WriteBatch batch;
  batch.Put(SessionFloorKey({1, 7}, 1), "short");
  batch.Put(OpIdsKey(kLarge, 1), "short");
  batch.Put(SessionFloorKey({1, 7}, 2) + "long", EncodeFloor(1));
  batch.Put(OpIdsKey(kLarge, 2),
            EncodeOpIds({.ids = {{.number = 2}, {.number = 1}}}));  // not in their order
  Change(batch);
  ExpectOnly("record", 4);
}

// Goal: a start that was cut short is no damage. Method: one copy of the life before.
TEST_F(StoreCheckTest, ACopyOfTheLifeBeforeIsNoDamage) {
  Buffer block = Buffer::Aligned(kBlockSize);
  ASSERT_TRUE(device.Read(kSuperOffsets[1], block).ok());
  { auto store = *OpenStore(device, {}); }
  ASSERT_TRUE(device.Write(kSuperOffsets[1], block).ok());
  EXPECT_TRUE(Check().findings.clean());
  { auto store = *OpenStore(device, {}); }
  { auto store = *OpenStore(device, {}); }
  ASSERT_TRUE(device.Write(kSuperOffsets[1], block).ok());
  ExpectOnly("superblock", 1);
}

TEST_F(StoreCheckTest, DamagedTablesAreDamageAndNoFailure) {
  ASSERT_TRUE(ZeroRange(device, super.kv_offset, super.kv_bytes).ok());
  ExpectOnly("volume", 1);
}

TEST_F(StoreCheckTest, WhatIsNoOsdIsAnError) {
  MemDevice blank(kBytes);
  EXPECT_EQ(CheckStore(blank, {}).code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace weir::osd
