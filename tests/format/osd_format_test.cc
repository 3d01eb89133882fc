// Superblock and records of an OSD's disk, formats 1 to 4. From 2 on copies share blocks, which
// changes no record; 3 has extent maps with blocks for which space is kept; 4 has versions of two
// parts, the index of slots, op ids and lives.
#include <gtest/gtest.h>

#include <cstring>

#include "common/disk/mem_device.h"
#include "osd/format/onode_format.h"
#include "osd/store/superblock.h"
#include "tests/format/golden.h"

namespace weir::osd {
namespace {

using weir::testing::Golden;

constexpr ObjectId kId{InodeId(0x1122334455667788), 9};

Superblock SuperblockOf(uint32_t version) {
  Superblock super{};
  std::memcpy(super.magic, kSuperMagic, sizeof super.magic);
  super.version = version;
  super.generation = 7;
  super.device_bytes = 64 << 20;
  super.kv_offset = 1 << 20;
  super.kv_bytes = 24 << 20;
  super.data_offset = 25 << 20;
  super.data_bytes = 38 << 20;
  return super;
}

// What this program makes is what was shipped; what was shipped, alone on a disk, is read.
Result<Superblock> ReadShipped(const std::string& file, const Superblock& super) {
  Golden golden(file);
  MemDevice device(64 << 20);
  EXPECT_TRUE(StoreSuperblock(device, super).ok());
  Buffer block = Buffer::Aligned(kBlockSize);
  EXPECT_TRUE(device.Read(0, block).ok());
  const std::string shipped = golden.Expect("superblock", block.view());
  MemDevice old(64 << 20);
  std::memcpy(block.data(), shipped.data(), kBlockSize);
  EXPECT_TRUE(old.Write(kSuperOffsets[1], block).ok());
  return LoadSuperblock(old);
}

TEST(OsdFormatTest, SuperblockOfFormat1) {
  Superblock super = SuperblockOf(1);
  ASSERT_TRUE(SetIdentity({"cluster", "disk", 3, 123456789}, &super).ok());
  const Result<Superblock> read = ReadShipped("osd_superblock_v1.txt", super);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->generation, 7u);
  EXPECT_EQ(read->data_offset, 25u << 20);
  EXPECT_EQ(IdentityOf(*read).cluster_uuid, "cluster");
  EXPECT_EQ(IdentityOf(*read).osd_id, 3u);
}

TEST(OsdFormatTest, SuperblockOfFormat2) {
  Superblock super = SuperblockOf(2);
  OsdIdentity identity{"cluster", "disk", 3, 123456789};
  identity.tier = "fast";
  ASSERT_TRUE(SetIdentity(identity, &super).ok());
  const Result<Superblock> read = ReadShipped("osd_superblock_v2.txt", super);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, 2u);
  EXPECT_EQ(IdentityOf(*read).osd_id, 3u);
  EXPECT_EQ(IdentityOf(*read).tier, "fast");
}

TEST(OsdFormatTest, SuperblockOfFormat3) {
  Superblock super = SuperblockOf(3);
  ASSERT_TRUE(SetIdentity({"cluster", "disk", 3, 123456789}, &super).ok());
  const Result<Superblock> read = ReadShipped("osd_superblock_v3.txt", super);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, 3u);
  EXPECT_EQ(IdentityOf(*read).osd_id, 3u);
}

TEST(OsdFormatTest, SuperblockOfFormat4) {
  Superblock super = SuperblockOf(4);
  super.life = 0x0102030405060708;
  ASSERT_TRUE(SetIdentity({"cluster", "disk", 3, 123456789}, &super).ok());
  const Result<Superblock> read = ReadShipped("osd_superblock_v4.txt", super);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->version, 4u);
  EXPECT_EQ(IdentityOf(*read).life, 0x0102030405060708u);
}

constexpr SlotId kSlot{0x01020304, 0x0a0b0c0d};

TEST(OsdFormatTest, KeysOfFormat4) {
  Golden golden("osd_keys_v4.txt");
  const ParsedKey index = ParseKey(golden.Expect("index", IndexKey(kSlot, kId)));
  EXPECT_EQ(index.kind, 'N');
  EXPECT_EQ(index.slot, kSlot);
  EXPECT_EQ(index.id, kId);
  const ParsedKey ids = ParseKey(golden.Expect("op ids", OpIdsKey(kId, 0x8877665544332211)));
  EXPECT_EQ(ids.kind, 'I');
  EXPECT_EQ(ids.id, kId);
  EXPECT_EQ(ids.session, 0x8877665544332211u);
  const std::string shipped =
      golden.Expect("session floor", SessionFloorKey(kSlot, 0x8877665544332211));
  const ParsedKey floor = ParseKey(shipped);
  EXPECT_EQ(floor.kind, 'F');
  EXPECT_EQ(floor.slot, kSlot);
  EXPECT_EQ(floor.session, 0x8877665544332211u);
  for (const char kind : {'P', 'B', 'M'}) EXPECT_EQ(ParseKey(kind + shipped.substr(1)).kind, 0);
}

TEST(OsdFormatTest, HeadsOfFormat4) {
  Golden golden("osd_values_v4.txt");
  OnodeHead made{.size = 4 << 20, .version = {3, 7}, .data_version = {2, 5}, .shards = 0x8001};
  const auto expect = [&](const std::string& name) {
    const std::string shipped = golden.Expect(name, EncodeHead(made));
    const Result<OnodeHead> read = DecodeHead(shipped);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->size, made.size);
    EXPECT_EQ(read->version, made.version);
    EXPECT_EQ(read->data_version, made.data_version);
    EXPECT_EQ(read->shards, made.shards);
    EXPECT_EQ(read->tombstone, made.tombstone);
    EXPECT_EQ(read->slot, made.slot);
    for (size_t size = 0; size < shipped.size(); ++size) {
      EXPECT_FALSE(DecodeHead(shipped.substr(0, size)).ok()) << size;
    }
  };
  expect("head");
  made.slot = kSlot;
  expect("head in a slot");
  made = {.version = {3, 8}, .tombstone = true, .slot = kSlot};
  expect("tombstone");

  const std::string version = golden.Expect("index", EncodeVersion({3, 7}));
  EXPECT_EQ(*DecodeVersion(version), (replication::Version{3, 7}));
  EXPECT_FALSE(DecodeVersion(version.substr(1)).ok());
  OpIdsValue ids{.object_floor = 40, .ids = {{41, {3, 7}, 0, 4096}, {43, {3, 8}, 10, 0}}};
  const std::string shipped = golden.Expect("op ids", EncodeOpIds(ids));
  ASSERT_TRUE(DecodeOpIds(shipped).ok());
  EXPECT_EQ(DecodeOpIds(shipped)->object_floor, 40u);
  EXPECT_EQ(DecodeOpIds(shipped)->ids, ids.ids);
  EXPECT_FALSE(DecodeOpIds(shipped.substr(0, shipped.size() - 1)).ok());
  Golden allocated("osd_allocated_v4.txt");
  ids.ids[0].kept = {{0, 2 * kBlockSize}, {1023 * kBlockSize, kBlockSize}};
  EXPECT_EQ(DecodeOpIds(allocated.Expect("op ids", EncodeOpIds(ids)))->ids, ids.ids);
  EXPECT_EQ(*DecodeFloor(golden.Expect("session floor", EncodeFloor(44))), 44u);
  EXPECT_FALSE(DecodeFloor("").ok());
}

TEST(OsdFormatTest, ExtentMapsOfFormat3) {
  Golden golden("osd_values_v3.txt");
  std::vector<BlockRef> refs(kBlocksPerShard), read(kBlocksPerShard);
  uint64_t kept = 0;
  const uint64_t all = ~uint64_t{0};
  ASSERT_TRUE(
      DecodeShard(golden.Expect("nothing but kept", EncodeShard(refs, all)), read, &kept).ok());
  EXPECT_EQ(read, refs);
  EXPECT_EQ(kept, all);
  for (uint32_t i = 0; i < 3; ++i) refs[i] = {1000 + i, 0xa0b0c0d0 + i};
  const uint64_t some = uint64_t{1} << 63 | 0x38;
  const std::string shard = golden.Expect("shard", EncodeShard(refs, some));
  ASSERT_TRUE(DecodeShard(shard, read, &kept).ok());
  EXPECT_EQ(read, refs);
  EXPECT_EQ(kept, some);
  for (size_t size = 0; size < shard.size(); ++size) {
    EXPECT_FALSE(DecodeShard(shard.substr(0, size), read, &kept).ok()) << size;
  }
}

TEST(OsdFormatTest, NewerFormatIsRefused) {
  MemDevice device(64 << 20);
  ASSERT_TRUE(StoreSuperblock(device, SuperblockOf(kFormatVersion + 1)).ok());
  EXPECT_EQ(LoadSuperblock(device).code(), ErrorCode::kNotSupported);
}

TEST(OsdFormatTest, TheHeadsOfAnInodeEndBeforeThoseOfTheNext) {
  for (const uint64_t inode : {uint64_t{0}, uint64_t{255}, UINT64_MAX - 1}) {
    const std::string end = HeadKeysEnd(InodeId(inode));
    EXPECT_LT(HeadKey({InodeId(inode), UINT64_MAX}), end);
    EXPECT_LT(end, HeadKey({InodeId(inode + 1), 0}));
  }
  EXPECT_LT(HeadKey({InodeId(UINT64_MAX), UINT64_MAX}), HeadKeysEnd(InodeId(UINT64_MAX)));
}

TEST(OsdFormatTest, KeysOfFormat1) {
  Golden golden("osd_keys_v1.txt");
  const ParsedKey head = ParseKey(golden.Expect("head", HeadKey(kId)));
  EXPECT_EQ(head.kind, 'O');
  EXPECT_EQ(head.id, kId);
  const ParsedKey shard = ParseKey(golden.Expect("shard", ShardKey(kId, 15)));
  EXPECT_EQ(shard.kind, 'S');
  EXPECT_EQ(shard.number, 15u);
  const ParsedKey overlay = ParseKey(golden.Expect("overlay", OverlayKey(kId, 1023)));
  EXPECT_EQ(overlay.kind, 'D');
  EXPECT_EQ(overlay.number, 1023u);
  EXPECT_EQ(golden.Expect("version mark", kVersionMarkKey), kVersionMarkKey);
}

TEST(OsdFormatTest, ValuesOfFormat1) {
  Golden golden("osd_values_v1.txt");
  // It is only read any more.
  const std::string head = golden.Shipped("head", [] { return std::string(); });
  ASSERT_TRUE(DecodeHead(head).ok());
  EXPECT_EQ(DecodeHead(head)->size, 4u << 20);
  EXPECT_EQ(DecodeHead(head)->version, (replication::Version{0, 0x0102030405060708}));
  EXPECT_EQ(DecodeHead(head)->data_version, DecodeHead(head)->version);
  EXPECT_FALSE(DecodeHead(head)->slot.has_value());
  EXPECT_FALSE(DecodeHead(head)->tombstone);
  EXPECT_EQ(DecodeHead(head)->shards, 0x8001);

  std::vector<BlockRef> refs(kBlocksPerShard), read(kBlocksPerShard);
  for (uint32_t i = 0; i < 3; ++i) refs[i] = {1000 + i, 0xa0b0c0d0 + i};  // a run
  refs[5] = {77, 1};                                                      // behind a hole
  refs[63] = {0xfffffffe, 0xffffffff};
  const std::string shard = golden.Expect("shard", EncodeShard(refs));
  uint64_t kept = 1;
  ASSERT_TRUE(DecodeShard(shard, read, &kept).ok());
  EXPECT_EQ(read, refs);
  EXPECT_EQ(kept, 0u);

  const std::string block(kBlockSize, 'w');
  const std::string overlay = golden.Expect("overlay", EncodeOverlay(99, block));
  ASSERT_TRUE(DecodeOverlay(overlay).ok());
  EXPECT_EQ(DecodeOverlay(overlay)->version, 99u);
  EXPECT_EQ(DecodeOverlay(overlay)->block, block);
}

}  // namespace
}  // namespace weir::osd
