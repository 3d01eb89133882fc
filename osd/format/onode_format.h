// Keys and values of an OSD's RocksDB; grammar in DISK_FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/replication/chain.h"
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
  replication::Version version;       // of the last operation, also of one that was refused
  replication::Version data_version;  // of the last one that changed the object
  uint16_t shards = 0;                // bit i: shard record i exists
  bool tombstone = false;             // there is no such object, only op ids of it
  std::optional<SlotId> slot;         // where the last sender that said so placed it
};

std::string HeadKey(ObjectId id);
// Behind the heads of all objects of an inode.
std::string HeadKeysEnd(InodeId inode);
std::string ShardKey(ObjectId id, uint32_t shard);
std::string OverlayKey(ObjectId id, uint32_t block);
// An object in the index of its slot; the value is the version of its head.
std::string IndexKey(SlotId slot, ObjectId id);
// The op ids of one session that an object knows.
std::string OpIdsKey(ObjectId id, uint64_t session);
// Below the value the session asks nothing more of the slot.
std::string SessionFloorKey(SlotId slot, uint64_t session);
// Keeps the next free version number, rounded up, so that versions never repeat.
inline constexpr std::string_view kVersionMarkKey = "V";

// What a key is about; kind 0: not one of ours.
struct ParsedKey {
  // 'O' head, 'S' shard, 'D' overlay, 'N' index, 'I' op ids, 'F' session floor
  char kind = 0;
  ObjectId id;
  uint32_t number = 0;   // of the shard or block
  SlotId slot;           // 'N', 'F'
  uint64_t session = 0;  // 'I', 'F'
};
ParsedKey ParseKey(std::string_view key);

std::string EncodeHead(const OnodeHead& head);
Result<OnodeHead> DecodeHead(std::string_view value);
// Of the value of a head.
bool IsTombstone(std::string_view value);

std::string EncodeVersion(replication::Version version);
Result<replication::Version> DecodeVersion(std::string_view value);

// What became of an operation, for whoever asks again. `kept` is encoded as further records of the
// same number, which programs that know nothing of it pass over.
struct OpIdRecord {
  uint64_t number = 0;
  replication::Version version;
  uint16_t status = 0;  // ErrorCode
  uint64_t result = 0;  // where an append went; of all else the bytes that it freed
  // By an allocation: whole blocks, in their order.
  std::vector<ByteRange> kept{};
  friend bool operator==(const OpIdRecord&, const OpIdRecord&) = default;
};
struct OpIdsValue {
  uint64_t object_floor = 0;  // below it the session asks nothing more of the object
  std::vector<OpIdRecord> ids;
};
std::string EncodeOpIds(const OpIdsValue& value);
Result<OpIdsValue> DecodeOpIds(std::string_view value);

std::string EncodeFloor(uint64_t floor);
Result<uint64_t> DecodeFloor(std::string_view value);

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
