// Keys and values of an OSD's RocksDB; grammar in DISK_FORMAT.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "osd/store/object_store.h"

namespace weir::osd {

inline constexpr uint32_t kBlocksPerObject = kMaxObjectSize / kBlockSize;
inline constexpr uint32_t kBlocksPerShard = 64;
inline constexpr uint32_t kShardsPerObject = kBlocksPerObject / kBlocksPerShard;
static_assert(kShardsPerObject == 16, "the head keeps one bit per shard in 16");
static_assert(kBlocksPerShard == 64, "a shard keeps one bit per block in 64");

// One block of an object: where on the device, in blocks (0: a hole), and its checksum.
struct BlockRef {
  uint32_t place = 0;
  uint32_t crc = 0;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

struct OnodeHead {
  uint64_t size = 0;
  uint64_t version = 0;
  uint16_t shards = 0;  // bit i: shard record i exists
};

std::string HeadKey(ObjectId id);
// Behind the heads of all objects of an inode.
std::string HeadKeysEnd(InodeId inode);
std::string ShardKey(ObjectId id, uint32_t shard);
std::string OverlayKey(ObjectId id, uint32_t block);
// Keeps the next free version number, rounded up, so that versions never repeat.
inline constexpr std::string_view kVersionMarkKey = "V";

// What a key is about; kind 0: not one of ours.
struct ParsedKey {
  char kind = 0;  // 'O' head, 'S' shard, 'D' overlay
  ObjectId id;
  uint32_t number = 0;  // of the shard or block
};
ParsedKey ParseKey(std::string_view key);

std::string EncodeHead(const OnodeHead& head);
Result<OnodeHead> DecodeHead(std::string_view value);

// `refs` are the blocks of one shard, at most kBlocksPerShard. Bit i of `kept`: space is kept for
// block i until it is written.
std::string EncodeShard(std::span<const BlockRef> refs, uint64_t kept = 0);
// Fills refs[0 .. kBlocksPerShard); `kept` may be null.
Status DecodeShard(std::string_view value, std::span<BlockRef> refs, uint64_t* kept);

// A whole block that waits in RocksDB for its place.
std::string EncodeOverlay(uint64_t version, std::string_view block);
struct OverlayValue {
  uint64_t version;
  std::string_view block;
};
Result<OverlayValue> DecodeOverlay(std::string_view value);

}  // namespace weir::osd
