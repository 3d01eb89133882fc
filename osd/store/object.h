// What the store has in memory about one object, and an operation on it. Internal to osd/store.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "osd/alloc/extent_allocator.h"
#include "osd/format/onode_format.h"
#include "osd/store/object_store.h"

namespace weir::osd {

struct StoreOp;

// A whole block that lives in RocksDB until it is moved to its place.
struct Overlay {
  Buffer bytes;
  uint64_t version = 0;   // of the object then: its sequence, which is never given twice
  bool reserved = false;  // the block has no place: the allocator keeps one for it
  bool moving = false;    // a fresh place is being written
};

// `mutex` guards everything; it is never held over I/O. Lock order: cache, object, commit queue.
struct Object {
  explicit Object(ObjectId object_id) : id(object_id) {}
  const ObjectId id;
  std::mutex mutex;
  bool loaded = false, loading = false;
  std::vector<std::function<void(const Status&)>> waiting;  // for the load

  bool exists = false;
  uint64_t size = 0;
  replication::Version version;       // of the last operation; stays when the object goes
  replication::Version data_version;  // of the last one that changed it
  std::optional<SlotId> slot;         // whose index has it
  uint16_t shards = 0;                // records that exist in RocksDB once all batches are through
  std::vector<BlockRef> blocks;       // a multiple of kBlocksPerShard
  std::map<uint32_t, Overlay> overlays;
  // One word per shard, or none: the blocks for which the allocator keeps one, since they were
  // allocated and not written. No bit for what has an overlay with a reserved block.
  std::vector<uint64_t> kept;

  std::deque<std::shared_ptr<StoreOp>> queue;  // in the order of the calls

  bool applying = false;       // overlays are being written to their places
  std::vector<Extent> parked;  // freed and durable, but `applying` may still write there
  bool parks_spare = false;    // the operation with the spare blocks waits for them

  uint64_t charged = 0;  // bytes counted by the cache

  // `blocks` covers so many of them.
  void GrowTo(uint32_t count) {
    const size_t rounded = (size_t{count} + kBlocksPerShard - 1) / kBlocksPerShard;
    if (blocks.size() < rounded * kBlocksPerShard) blocks.resize(rounded * kBlocksPerShard);
  }
  [[nodiscard]] BlockRef RefOf(uint32_t block) const {
    return block < blocks.size() ? blocks[block] : BlockRef{};
  }
  [[nodiscard]] bool IsKept(uint32_t block) const {
    return !kept.empty() && (kept[block / kBlocksPerShard] >> block % kBlocksPerShard & 1) != 0;
  }
  void Keep(uint32_t block) {
    kept.resize(kShardsPerObject);
    kept[block / kBlocksPerShard] |= uint64_t{1} << block % kBlocksPerShard;
  }
  bool Unkeep(uint32_t block) {  // false: it was not
    if (!IsKept(block)) return false;
    kept[block / kBlocksPerShard] &= ~(uint64_t{1} << block % kBlocksPerShard);
    return true;
  }
  [[nodiscard]] bool HasBytes(uint32_t block) const {
    return RefOf(block).place != 0 || overlays.contains(block);
  }
  // It counts as space of the object.
  [[nodiscard]] bool TakesSpace(uint32_t block) const { return IsKept(block) || HasBytes(block); }
};
using ObjectPtr = std::shared_ptr<Object>;

struct StoreOp {
  enum class Kind { kWrite, kTruncate, kDelete, kPunch, kCopy, kAllocate, kGiveBack };
  ObjectPtr object;
  Kind kind = Kind::kWrite;
  uint64_t offset = 0;  // kTruncate: the new size
  uint64_t length = 0;  // of all on ranges but writes
  bool zeros = false;   // kAllocate: the range becomes zeros
  ObjectPtr source;     // kCopy
  uint64_t source_offset = 0;
  ChangeTerms terms;
  Buffer data;
  std::function<void(Result<ObjectInfo>)> done;
  std::function<Duration()> landed;  // WriteHints; may be empty

  // Guarded by object->mutex.
  bool started = false, ready = false;
  bool early = false;  // started before it is at the head

  // Filled while the operation is prepared, by one thread at a time.
  Status aborted;  // the object could not be loaded; guarded by object->mutex

  Status failure;
  // Its answer is on its way although it changed nothing: it was made before, or its refusal is
  // kept. What it has taken is to be given back.
  bool settled = false;
  std::vector<uint32_t> edges;           // blocks that must be read before they are partly changed
  std::map<uint32_t, Buffer> old;        // their bytes, up to the end of the object
  uint32_t first_block = 0;              // of `image`
  Buffer image;                          // whole blocks
  std::vector<uint32_t> crcs;            // of image
  std::optional<uint32_t> expected_crc;  // of the data
  std::vector<Extent> places;            // empty: image goes to RocksDB as overlays
  // kPunch, kCopy: whole blocks that go to RocksDB as overlays, and the places that the blocks from
  // `first_block` on get (0: a hole). Of those a reference is held until the object has them.
  std::map<uint32_t, Buffer> patches;
  std::vector<BlockRef> refs;
  uint64_t freed_blocks = 0;  // of all that take away
  uint64_t grown_blocks = 0;  // that take space from now on
  // On a full disk: blocks of the object whose reserved blocks `places` used up, and whether the
  // spare ones are this operation's.
  std::vector<uint32_t> claimed;
  uint32_t overwrites = 0;  // blocks with space of their own that was not claimed
  bool has_spare = false;
  // kAllocate: blocks that are to be kept, how many are reserved already, and what GiveBack may
  // give back.
  std::vector<uint32_t> to_keep;
  uint32_t reserved = 0;
  std::vector<ByteRange> keeps;
  uint64_t data_stamp = 0;
  Duration patience{0};
  [[nodiscard]] bool HasId() const { return terms.op.session != 0; }
  [[nodiscard]] uint64_t end() const { return offset + length; }
};
using OpPtr = std::shared_ptr<StoreOp>;

}  // namespace weir::osd
