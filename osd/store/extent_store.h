// ExtentStore: the ObjectStore on a raw device. How it works, with the crash points of a write:
// README.md. Split by idea: extent_store.cc (open, close, small calls), object_cache.cc (finding
// and loading objects), changes.cc (operations as they are asked for), write_path.cc (preparing
// operations), mutate.cc (what an operation changes), once.cc (what became of it, for who asks
// again), range_ops.cc (holes, copies), allocated.cc (space kept for later, and a full disk),
// read_path.cc, deferred.cc (moving overlays to their places).
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <set>
#include <thread>

#include "common/disk/block_device.h"
#include "common/disk/transfer_buffers.h"
#include "common/kv/rocks_kv_store.h"
#include "common/reactor/loop.h"
#include "osd/alloc/extent_allocator.h"
#include "osd/store/commit_queue.h"
#include "osd/store/object.h"
#include "osd/store/object_store.h"
#include "osd/store/op_table.h"
#include "osd/store/write_gatherer.h"

namespace weir::osd {

class ExtentStore final : public ObjectStore {
 public:
  // `data`: where objects lie on the device.
  ExtentStore(BlockDevice& device, std::unique_ptr<RawKvStore> kv, Region data,
              const StoreOptions& options);
  ~ExtentStore() override;
  // Reads the space map and the waiting overlays; before any other call.
  Status Recover();

  void Read(ObjectId id, uint64_t offset, uint64_t length, ReadDone done) override;
  void Change(ObjectChange change, WriteDone done) override;
  void Write(ObjectId id, uint64_t offset, Buffer data, const WriteHints& hints,
             WriteDone done) override;
  void Truncate(ObjectId id, uint64_t size, WriteDone done) override;
  void Delete(ObjectId id, Done done) override;
  void DeleteInode(InodeId inode, uint64_t first_index, DeletedDone done) override;
  void DeleteSome(InodeId inode, uint64_t first_index, size_t most, DeletedDone done) override;
  void Punch(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) override;
  void Allocate(ObjectId id, uint64_t offset, uint64_t length, bool zeros, WriteDone done) override;
  void GiveBack(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) override;
  void Copy(const CopySource& from, ObjectId to, uint64_t offset, uint64_t length,
            WriteDone done) override;
  void Extents(ObjectId id, uint64_t offset, uint64_t length, ExtentsDone done) override;
  void NextIndex(ObjectId id, NextDone done) override;
  void Stat(ObjectId id, InfoDone done) override;
  Result<std::optional<ObjectId>> NextObject(ObjectId from) override;
  uint64_t LbaHint(ObjectId id, uint64_t offset) override;
  void SetPieceBytes(uint64_t bytes) override {
    piece_bytes_.store(bytes, std::memory_order_relaxed);
  }
  void SetBackgroundMeter(std::shared_ptr<IoMeter> meter) override;
  [[nodiscard]] StoreStats Stats() const override;
  Status Close() override;

  // Without threads (StoreOptions::wake): what the loader and the commit queue would do now, and
  // what the mover of small writes would, which waits for the device. False: there was nothing.
  bool Work();
  bool MoveOverlays();

 private:
  struct ReadOp;
  struct DeferredRef {
    ObjectPtr object;
    uint32_t block;
    uint64_t version;
  };
  struct ApplyTask;
  struct CacheEntry {
    ObjectPtr object;
    std::list<ObjectId>::iterator lru;
  };

  // extent_store.cc
  Result<std::set<ObjectId>> FirstObjects(ObjectId from, size_t most);
  void DeleteThese(std::set<ObjectId> ids, size_t most, DeletedDone done);
  void DeleteOne(ObjectId id, WriteDone done);
  Status RecoverSpace();
  Status CheckShared();
  Status RecoverOverlays();
  void AwaitLoop() const;
  void Begin();  // an operation or read is under way
  void End();
  uint64_t NextSequence(WriteBatch* batch);

  // object_cache.cc
  ObjectPtr Lookup(ObjectId id);
  ObjectPtr FindCached(ObjectId id);
  void EvictLocked();
  void Charge(Object& object);  // requires object.mutex
  void WhenLoaded(const ObjectPtr& object, std::function<void(const Status&)> run);
  void RequestLoadLocked(const ObjectPtr& object);  // requires object->mutex
  void LoadNow(const ObjectPtr& object);
  Status Load(Object& object);
  // Where RocksDB may be waited for.
  void OnLoader(std::function<void()> task);
  bool RunLoaderTask();  // false: nothing, and with threads: nothing will come
  // Where the store calls back.
  void OnLoop(std::function<void()> task) const;

  // write_path.cc
  void Enqueue(OpPtr op);
  void Pump(const ObjectPtr& object);
  void Start(const OpPtr& op);
  void StartAppend(const OpPtr& op);
  void StartWrite(const OpPtr& op);
  void StartTruncate(const OpPtr& op);
  void ReadEdges(const OpPtr& op);
  void PrepareImage(const OpPtr& op);
  void WriteImage(const OpPtr& op);
  void WritePlaces(const OpPtr& op);
  void Ready(const OpPtr& op);
  void Fail(const OpPtr& op, Status status);
  void FailQueue(const ObjectPtr& object, const Status& status);
  [[nodiscard]] bool DeferThis(const StoreOp& op) const;
  bool KvIsFull();

  // range_ops.cc
  Result<uint64_t> FindNextIndex(ObjectId id);
  void StartPunch(const OpPtr& op);
  void PunchEdges(const OpPtr& op);
  void PlanCopy(const OpPtr& op);
  bool TakeSourceBlocks(const OpPtr& op);
  void CopyEdges(const OpPtr& op);
  void CopyBytes(const OpPtr& op);
  void DropRefs(StoreOp& op);

  // allocated.cc
  void StartAllocate(const OpPtr& op);
  void AllocateZeros(const OpPtr& op);
  void WriteWhenFull(const OpPtr& op);
  bool AllocateClaimed(const OpPtr& op);
  void Unclaim(const OpPtr& op);
  void WithSpare(const OpPtr& op);
  void TakeSpare(const OpPtr& op);
  void LeaveSpare();
  void EndSpare(Object& object);
  // These require the object's mutex.
  [[nodiscard]] bool HasOwnSpace(const Object& object, uint32_t block) const;
  void Claim(Object& object, StoreOp& op) const;
  bool ReserveToKeep(Object& object, StoreOp& op);
  void KeepBlocks(Object& object, StoreOp& op, WriteBatch* batch, std::vector<Extent>* freed);
  void GiveBackBlocks(Object& object, StoreOp& op, WriteBatch* batch);

  // mutate.cc; all require the object's mutex
  void Execute(const OpPtr& op);
  void Delete(const OpPtr& op, WriteBatch batch);
  // once.cc; these require the object's mutex and the table's.
  std::unique_lock<std::mutex> LockTable(const Object& object, const StoreOp& op);
  bool Admit(const OpPtr& op, WriteBatch* batch);
  static void CheckExpected(const Object& object, StoreOp& op);
  void Refuse(const OpPtr& op, WriteBatch batch);
  void RecordDone(Object& object, const StoreOp& op, WriteBatch* batch);
  void PutTombstone(Object& object, std::optional<SlotId> slot, WriteBatch* batch);
  void Settle(const OpPtr& op, WriteBatch batch, Status status, ObjectInfo info);
  bool ReserveOverlays(Object& object, const StoreOp& op);
  [[nodiscard]] Status NoSpace() const;
  [[nodiscard]] bool NeedsPlace(const Object& object, const StoreOp& op, uint32_t block) const;
  void PlaceImage(Object& object, StoreOp& op, WriteBatch* batch, std::vector<Extent>* freed);
  void PutOverlay(Object& object, uint32_t block, Buffer bytes, WriteBatch* batch);
  void Unkeep(Object& object, uint32_t block);
  void PlaceRefs(Object& object, StoreOp& op, WriteBatch* batch, std::vector<Extent>* freed);
  void Punch(Object& object, StoreOp& op, WriteBatch* batch, std::vector<Extent>* freed);
  uint64_t MakeHole(Object& object, uint32_t first, uint32_t last, WriteBatch* batch,
                    std::vector<Extent>* freed);
  void CutTo(Object& object, uint64_t size, StoreOp& op, WriteBatch* batch,
             std::vector<Extent>* freed);
  void Clear(Object& object, StoreOp& op, WriteBatch* batch, std::vector<Extent>* freed);
  void DropOverlay(Object& object, uint32_t block, WriteBatch* batch);
  void PutShards(Object& object, uint32_t first_block, uint32_t last_block, WriteBatch* batch);
  static void PutHead(const Object& object, WriteBatch* batch);
  static void PutIndex(Object& object, std::optional<SlotId> slot, WriteBatch* batch);
  replication::Version NextVersion(const Object& object, const StoreOp& op, WriteBatch* batch);
  void Commit(const OpPtr& op, WriteBatch batch, std::vector<Extent> freed,
              std::vector<DeferredRef> deferred);
  void ReleaseSpace(Object& object, const std::vector<Extent>& freed);

  // read_path.cc
  void ReadLoaded(const ObjectPtr& object, uint64_t offset, uint64_t length, ReadDone done,
                  int attempt);
  void VerifyRead(const std::shared_ptr<ReadOp>& op);
  void ReadFailed(ReadOp& op, uint32_t block);

  // deferred.cc
  bool ApplyWhenDue();  // false: as LoadSome
  [[nodiscard]] bool ApplyDueLocked() const;
  bool ApplySome();
  std::vector<ApplyTask> TakeDeferred();
  size_t WriteTasks(std::vector<ApplyTask>& tasks, size_t begin, uint64_t bytes_max);
  size_t WriteMetered(std::vector<ApplyTask>& tasks, size_t begin);
  void FinishTasks(std::vector<ApplyTask>& tasks, size_t begin, size_t end);
  void PushMoved(const ObjectPtr& object, WriteBatch batch, std::vector<Extent> freed);
  void WakeApplier();

  BlockDevice& device_;
  const std::unique_ptr<RawKvStore> kv_;
  StoreOptions options_;
  ExtentAllocator allocator_;
  WriteGatherer writes_;
  TransferBuffers transfer_buffers_;
  CommitQueue commits_;
  OpTable op_table_;

  std::mutex cache_mutex_;
  std::map<ObjectId, CacheEntry> cache_;
  std::list<ObjectId> lru_;  // front: least recently used
  std::atomic<uint64_t> cache_bytes_{0};

  std::mutex load_mutex_;
  std::condition_variable load_changed_;
  std::deque<std::function<void()>> to_load_;

  std::mutex deferred_mutex_;
  std::condition_variable deferred_changed_;
  std::deque<DeferredRef> deferred_;  // durable overlays, oldest first
  std::atomic<uint64_t> overlay_count_{0};
  std::shared_ptr<IoMeter> meter_;  // asked by the applier; guarded by deferred_mutex_
  std::atomic<uint64_t> metered_bytes_{0}, unmetered_bytes_{0};
  bool drain_ = false;  // move everything, not only the oldest

  std::mutex outstanding_mutex_;
  std::condition_variable outstanding_changed_;
  std::atomic<uint64_t> outstanding_{0};

  std::mutex spare_mutex_;
  OpPtr spare_user_;               // may take the spare blocks now
  std::deque<OpPtr> spare_queue_;  // wait for them

  std::atomic<uint64_t> piece_bytes_{UINT64_MAX};  // of large operations; see piecewise_io.h

  std::atomic<bool> stopping_{false}, kv_full_{false};
  bool closed_ = false;
  std::atomic<uint64_t> next_sequence_{1}, sequence_mark_{0};
  std::atomic<uint64_t> object_count_{0}, checksum_errors_{0};
  std::thread loader_, applier_;
};

}  // namespace weir::osd
