// ObjectStore: objects of up to 4 MiB on one raw device, with atomic and durable writes.
//
// A write is atomic per object: after power loss the object has the old bytes or the new, never a
// mix; when `done` says ok the write is on stable storage. Every block read is verified against its
// crc32c; a mismatch is kCorrupt, counted and logged, never wrong data. Bytes never written read as
// zeros.
//
// Units:   bytes; any offset and length, aligned or not.
// Threads: calls from any thread; they never wait for RocksDB or the device. `done` runs on
//          StoreOptions::loop, or without one on a thread of the store or the device, and must not
//          block. Operations on one object take effect in the order of the calls.
// Errors:  kNoSpace when the device is nearly full (deletes and truncates still work, as do writes
//          of what was written or allocated before, unless copies share it), kCorrupt, kIo,
//          kInvalid for a range beyond kMaxObjectSize.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/replication/chain.h"

namespace weir {
class BlockDevice;
class IoMeter;
class Loop;
}  // namespace weir

namespace weir::osd {

inline constexpr uint64_t kMaxObjectSize = 4 << 20;

// Bytes of one object that are or are not holes.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// What was read.
struct ObjectData {
  Buffer bytes;
  // Of the bytes, where the store knows it without another pass over them.
  std::optional<uint32_t> crc;
};

// A slot of a pool, as whoever asks places objects.
struct SlotId {
  uint32_t pool = 0;
  uint32_t slot = 0;
  friend constexpr auto operator<=>(const SlotId&, const SlotId&) = default;
};

struct ObjectInfo {
  uint64_t size = 0;             // one past the last byte ever written, unless truncated
  replication::Version version;  // of the change, or the last one; grows with each
  // Whole blocks that take no space any more, and those that do now and did not before, where the
  // store counts.
  uint64_t freed_bytes = 0;
  uint64_t grown_bytes = 0;
  std::vector<ByteRange> kept;              // by Allocate: what GiveBack may give back
  std::optional<uint64_t> append_offset{};  // of an append: where it went
};

struct DeletedObjects {
  uint64_t next_index = 0;   // the first that is left; 0: there is none
  uint64_t freed_bytes = 0;  // where the store counts
};

struct CopySource {
  ObjectId id;
  uint64_t offset = 0;
};
// Whether a copy may share whole blocks instead of moving their bytes.
[[nodiscard]] bool CopySharesBlocks(uint64_t from_offset, uint64_t to_offset, uint64_t length);

struct WriteHints {
  // So much later than possible the write may become durable and answer, if that lets it share a
  // flush with others. For writers who have waited far longer already.
  Duration patience{0};
  // Called at most once, before `done`, on any thread: the data is where it belongs, and only the
  // commit that it shares with others is left. Not called for a write that fails before, nor for
  // one whose data goes with the commit. Returns its patience from now on.
  std::function<Duration()> landed{};
  // The crc32c of the data, as its sender knows it: kBadMessage, and nothing has changed, where the
  // data has another. It is compared with what the store sums up anyway.
  std::optional<uint32_t> crc{};
};

// A request as its sender repeats it until it is answered; common/wire/REPLICATION.md.
struct OpTerms {
  uint64_t session = 0;  // 0: it is not named and may be carried out twice
  uint64_t number = 0;
  uint64_t session_floor = 0;  // below it the session asks nothing more of the slot
  uint64_t object_floor = 0;   // and nothing of the object; both at most `number`
};
// On which conditions a change is made, and what is kept of it.
struct ChangeTerms {
  std::optional<SlotId> slot{};
  uint64_t chain_version = 0;  // of the slot's chain at the sender; 0: not said
  OpTerms op{};
  std::optional<replication::Version>
      expected{};       // kAgain unless the object has it; none(): no object
  bool append = false;  // a write at the object's end, wherever that is
};
struct ObjectChange {
  enum class Kind : uint8_t { kWrite, kTruncate, kPunch, kAllocate, kGiveBack, kCopy };
  Kind kind = Kind::kWrite;
  ObjectId id{};
  uint64_t offset = 0;  // kTruncate: the new size
  uint64_t length = 0;  // of all on ranges but writes
  bool zeros = false;   // kAllocate
  CopySource source{};  // kCopy
  Buffer data{};        // kWrite
  WriteHints hints{};   // kWrite
  ChangeTerms terms{};
};

struct StoreStats {
  uint64_t capacity_bytes = 0;  // for object data
  uint64_t used_bytes = 0;
  uint64_t shared_bytes = 0;  // what the objects would need besides, had each its own blocks
  uint64_t objects = 0;
  uint64_t checksum_errors = 0;
  uint64_t commits = 0;  // durable metadata batches, and operations in them
  uint64_t committed_ops = 0;
  // Since SetBackgroundMeter: what it was asked for, and what went to the device with nobody asked
  // although it should have been (README.md says what need not).
  uint64_t background_bytes = 0;
  uint64_t unmetered_bytes = 0;

  [[nodiscard]] uint64_t free_bytes() const {
    return capacity_bytes - std::min(capacity_bytes, used_bytes);
  }
};

class ObjectStore {
 public:
  using ReadDone = std::function<void(Result<ObjectData>)>;
  using WriteDone = std::function<void(Result<ObjectInfo>)>;
  using InfoDone = std::function<void(Result<ObjectInfo>)>;
  using ExtentsDone = std::function<void(Result<std::vector<ByteRange>>)>;
  using DeletedDone = std::function<void(Result<DeletedObjects>)>;
  using Done = std::function<void(Status)>;

  virtual ~ObjectStore() = default;

  // Up to `length` bytes from `offset`, cut at the object's end (an object that does not exist has
  // size 0, so the answer is an empty buffer).
  virtual void Read(ObjectId id, uint64_t offset, uint64_t length, ReadDone done) = 0;
  // Writes all of `data` at `offset`, growing the object as needed.
  virtual void Write(ObjectId id, uint64_t offset, Buffer data, const WriteHints& hints,
                     WriteDone done) = 0;
  // Any of the changes below, on terms. With op.session it is made once, however often and over
  // whatever restarts it is asked for: who asks again gets the first answer, also kNoSpace and
  // kAgain. Below a floor nothing is made: kStale. A store that keeps no ids ignores the terms.
  virtual void Change(ObjectChange change, WriteDone done);
  // Cuts (or extends with zeros) to `size`.
  virtual void Truncate(ObjectId id, uint64_t size, WriteDone done) = 0;
  virtual void Delete(ObjectId id, Done done) = 0;
  // Deletes the objects of an inode with index >= first_index. One that is made meanwhile may go,
  // too.
  virtual void DeleteInode(InodeId inode, uint64_t first_index, DeletedDone done) = 0;
  // So many of them at most, from the first on.
  virtual void DeleteSome(InodeId inode, uint64_t first_index, size_t most, DeletedDone done) = 0;
  // The range reads as zeros from now on, and its whole blocks take no space. The size stays, also
  // that of an object which does not exist. Works on a full device.
  virtual void Punch(ObjectId id, uint64_t offset, uint64_t length, WriteDone done);
  // Keeps space for the whole blocks that the range touches, so that writing them never gives
  // kNoSpace; they read as before, and count as used. The size stays; an object is made where there
  // is none. `zeros`: the range reads as zeros from now on. All or nothing: kNoSpace.
  virtual void Allocate(ObjectId id, uint64_t offset, uint64_t length, bool zeros, WriteDone done);
  // Keeps nothing any more for the blocks of the range, but what was written to them.
  virtual void GiveBack(ObjectId id, uint64_t offset, uint64_t length, WriteDone done);
  // Writes into `to` at `offset` the `length` bytes that `from` has (zeros where it has none) when
  // everything is in place that was acknowledged before the call. Whole blocks that lie alike in
  // both are shared, copy-on-write, and take neither space nor device time. The ranges must not
  // overlap in one object.
  virtual void Copy(const CopySource& from, ObjectId to, uint64_t offset, uint64_t length,
                    WriteDone done);
  // What of the range is not a hole, in order, cut at the object's end; to the block.
  virtual void Extents(ObjectId id, uint64_t offset, uint64_t length, ExtentsDone done);
  // The index of the next object of the same inode behind this one; UINT64_MAX: there is none.
  // Looks into the index: not for every request.
  using NextDone = std::function<void(Result<uint64_t>)>;
  virtual void NextIndex(ObjectId id, NextDone done);
  // Size 0 and version 0 for one that does not exist.
  virtual void Stat(ObjectId id, InfoDone done) = 0;

  // The first object that is stored at or behind `from`, in the order of ids; none: there is no
  // more. One that is being made or deleted may be missed. May read the device.
  virtual Result<std::optional<ObjectId>> NextObject(ObjectId from) = 0;
  // Where a range lies on the device, for the elevator; a stable hash order when it has no place
  // yet.
  virtual uint64_t LbaHint(ObjectId id, uint64_t offset) = 0;
  // From now on large reads and writes go to the device in pieces of this size, one after the
  // other, so that small ones get in between; also what is left of those under way. UINT64_MAX:
  // whole. Atomicity, durability and order are the same. May be ignored.
  virtual void SetPieceBytes(uint64_t bytes) { (void)bytes; }
  // Who is asked before background I/O (flushes, compactions, moving small writes to their places)
  // goes to the device; null: nobody. May be ignored.
  virtual void SetBackgroundMeter(std::shared_ptr<IoMeter> meter) { (void)meter; }
  [[nodiscard]] virtual StoreStats Stats() const = 0;
  // Waits for everything under way and makes the store ready for a fast start. No calls after it
  // but Stats.
  virtual Status Close() = 0;
};

// What mkfs writes down about a device; see osd/format/DISK_FORMAT.md.
struct OsdIdentity {
  std::string cluster_uuid;
  std::string osd_uuid;
  uint32_t osd_id = 0;
  uint64_t token_rate = 0;  // bytes per second, measured conservatively at mkfs; 0: not measured
  // Of a disk that is one of several of its OSD: its name (common/base/tier_name.h) and place
  // among them.
  std::string tier{};
  uint32_t tier_index = 0;
  uint32_t tiers = 0;  // 0: the OSD's only disk
  // How often a store was opened there, the last time included; only read, and written by
  // OpenStore.
  uint64_t life = 0;
};

struct StoreOptions {
  uint64_t memory_bytes = 256 << 20;        // onode and block caches together
  uint64_t deferred_write_max = 8192;       // at most this: through the RocksDB log (0: never)
  uint64_t deferred_apply_bytes = 8 << 20;  // so much waits in the log before it is moved out
  uint64_t kv_write_buffer_bytes = 0;       // of RocksDB; 0: by the size of the device
  // Where the store calls back, and whose thread the device completes on; outlives the store. Null:
  // on threads of the store and the device.
  Loop* loop = nullptr;
  // For simulations: no threads; the store says, under locks of its own, that its owner is to call
  // ExtentStore::Work soon. Empty: threads.
  std::function<void()> wake{};
};

struct MkfsOptions {
  OsdIdentity identity;
  bool force = false;  // overwrite what is recognised on the device
  StoreOptions store;
};
// Formats a device. Refuses (kExists) one that holds a partition table, a filesystem or an OSD of
// this or another cluster, naming what it found, unless `force`. kInvalid for a device that is too
// small.
Status MakeStore(BlockDevice& device, const MkfsOptions& options);
// kExists names what is recognised on a device.
Status CheckUnused(BlockDevice& device);
// kCorrupt: no valid superblock. kInvalid: not a WeirFS disk; says what it is instead when it can
// tell.
Result<OsdIdentity> ReadIdentity(BlockDevice& device);
// Writes a changed identity (a measured token rate, say) to the superblocks of a formatted device.
Status UpdateIdentity(BlockDevice& device, const OsdIdentity& identity);
// The version of the disk format before OpenStore, which makes it the newest; errors as
// ReadIdentity.
Result<uint32_t> ReadFormatVersion(BlockDevice& device);
// Opens a formatted device, for one life more, and recovers it. The device must outlive the store.
Result<std::unique_ptr<ObjectStore>> OpenStore(BlockDevice& device, const StoreOptions& options);

}  // namespace weir::osd
