// Superblock and records of an OSD's disk, format 1.
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

TEST(OsdFormatTest, SuperblockOfFormat1) {
  Golden golden("osd_superblock_v1.txt");
  Superblock super{};
  std::memcpy(super.magic, kSuperMagic, sizeof super.magic);
  super.version = 1;
  super.generation = 7;
  super.device_bytes = 64 << 20;
  super.kv_offset = 1 << 20;
  super.kv_bytes = 24 << 20;
  super.data_offset = 25 << 20;
  super.data_bytes = 38 << 20;
  ASSERT_TRUE(SetIdentity({"cluster", "disk", 3, 123456789}, &super).ok());
  MemDevice device(64 << 20);
  ASSERT_TRUE(StoreSuperblock(device, super).ok());
  Buffer block = Buffer::Aligned(kBlockSize);
  ASSERT_TRUE(device.Read(0, block).ok());
  const std::string shipped = golden.Expect("superblock", block.view());

  MemDevice old(64 << 20);
  std::memcpy(block.data(), shipped.data(), kBlockSize);
  ASSERT_TRUE(old.Write(kSuperOffsets[1], block).ok());
  const Result<Superblock> read = LoadSuperblock(old);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->generation, 7u);
  EXPECT_EQ(read->data_offset, 25u << 20);
  EXPECT_EQ(IdentityOf(*read).cluster_uuid, "cluster");
  EXPECT_EQ(IdentityOf(*read).osd_id, 3u);
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
  const std::string head = golden.Expect("head", EncodeHead({4 << 20, 0x0102030405060708, 0x8001}));
  ASSERT_TRUE(DecodeHead(head).ok());
  EXPECT_EQ(DecodeHead(head)->size, 4u << 20);
  EXPECT_EQ(DecodeHead(head)->version, 0x0102030405060708u);
  EXPECT_EQ(DecodeHead(head)->shards, 0x8001);

  std::vector<BlockRef> refs(kBlocksPerShard), read(kBlocksPerShard);
  for (uint32_t i = 0; i < 3; ++i) refs[i] = {1000 + i, 0xa0b0c0d0 + i};  // a run
  refs[5] = {77, 1};                                                      // behind a hole
  refs[63] = {0xfffffffe, 0xffffffff};
  const std::string shard = golden.Expect("shard", EncodeShard(refs));
  ASSERT_TRUE(DecodeShard(shard, read).ok());
  EXPECT_EQ(read, refs);

  const std::string block(kBlockSize, 'w');
  const std::string overlay = golden.Expect("overlay", EncodeOverlay(99, block));
  ASSERT_TRUE(DecodeOverlay(overlay).ok());
  EXPECT_EQ(DecodeOverlay(overlay)->version, 99u);
  EXPECT_EQ(DecodeOverlay(overlay)->block, block);
}

}  // namespace
}  // namespace weir::osd
