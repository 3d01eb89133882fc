// Moving overlays out of RocksDB to their places on the device.
//
// Only durable overlays are moved: while the block is rewritten in place, a crash may tear it, and
// then the overlay in RocksDB is the block. The overlay goes in the same batch that gets the new
// checksum in, and that batch waits for a flush of the data like any other (CommitQueue).
// While `applying`, space that the object frees is parked: a late write of ours must not hit a
// block that somebody else got in the meantime.
#include <algorithm>
#include <future>
#include <utility>

#include "common/base/crc32c.h"
#include "common/disk/io_meter.h"
#include "osd/store/extent_store.h"
#include "osd/store/piecewise_io.h"

namespace weir::osd {
namespace {

constexpr size_t kTasksMax = 512;
constexpr uint32_t kRunMax = 64;  // blocks joined into one write

}  // namespace

struct ExtentStore::ApplyTask {
  ObjectPtr object;
  uint32_t block;
  uint64_t version;
  Buffer bytes;
  uint32_t place;
  bool fresh;          // the place was allocated for this task
  uint32_t old_place;  // if fresh: that of the block, which others share; or 0
  Status status;
};

void ExtentStore::WakeApplier() {
  if (overlay_count_ * kBlockSize <= options_.deferred_apply_bytes) return;
  deferred_changed_.notify_one();
  if (options_.wake) options_.wake();
}

bool ExtentStore::ApplyDueLocked() const {
  return drain_ ||
         (!deferred_.empty() && overlay_count_ * kBlockSize > options_.deferred_apply_bytes);
}

bool ExtentStore::ApplyWhenDue() {
  {
    std::unique_lock lock(deferred_mutex_);
    if (!options_.wake) deferred_changed_.wait(lock, [this] { return ApplyDueLocked(); });
    if (deferred_.empty() || !ApplyDueLocked()) return false;
  }
  ApplySome();
  return true;
}

bool ExtentStore::ApplySome() {
  std::vector<ApplyTask> tasks = TakeDeferred();
  if (tasks.empty()) return false;
  std::sort(tasks.begin(), tasks.end(),
            [](const ApplyTask& a, const ApplyTask& b) { return a.place < b.place; });
  for (size_t begin = 0; begin < tasks.size();) begin = WriteMetered(tasks, begin);
  std::sort(tasks.begin(), tasks.end(), [](const ApplyTask& a, const ApplyTask& b) {
    return a.object == b.object ? a.block < b.block : a.object->id < b.object->id;
  });
  for (size_t begin = 0; begin < tasks.size();) {
    size_t end = begin + 1;
    while (end < tasks.size() && tasks[end].object == tasks[begin].object) ++end;
    FinishTasks(tasks, begin, end);
    begin = end;
  }
  return true;
}

std::vector<ExtentStore::ApplyTask> ExtentStore::TakeDeferred() {
  std::vector<DeferredRef> refs;
  {
    std::lock_guard lock(deferred_mutex_);
    while (!deferred_.empty() && refs.size() < kTasksMax) {
      refs.push_back(std::move(deferred_.front()));
      deferred_.pop_front();
    }
  }
  std::vector<ApplyTask> tasks;
  if (commits_.failed()) return tasks;  // nothing can be finished any more
  for (DeferredRef& ref : refs) {
    std::lock_guard lock(ref.object->mutex);
    const auto it = ref.object->overlays.find(ref.block);
    if (it == ref.object->overlays.end() || it->second.version != ref.version) continue;
    const uint32_t place = ref.object->RefOf(ref.block).place;
    ApplyTask task{ref.object, ref.block, ref.version, it->second.bytes, place, false, place, {}};
    if (!it->second.reserved && (place == 0 || allocator_.IsShared(place))) {
      it->second.reserved = ref.object->Unkeep(ref.block);
      if (!it->second.reserved) continue;  // stays
    }
    if (it->second.reserved) {
      it->second.moving = true;
      it->second.reserved = false;
      task.place = allocator_.AllocateReserved();
      task.fresh = true;
    }
    ref.object->applying = true;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// The same through the meter, if there is one. Overlays that pile up in memory are urgent.
size_t ExtentStore::WriteMetered(std::vector<ApplyTask>& tasks, size_t begin) {
  constexpr uint64_t kPileUp = 4;
  std::shared_ptr<IoMeter> meter;
  {
    const std::lock_guard lock(deferred_mutex_);
    meter = meter_;
  }
  if (meter == nullptr) {
    const size_t end = WriteTasks(tasks, begin, UINT64_MAX);
    const std::lock_guard lock(deferred_mutex_);
    // SetBackgroundMeter forgets what went past before it.
    if (meter_ == nullptr) unmetered_bytes_ += (end - begin) * kBlockSize;
    return end;
  }
  IoMeter::Io io;
  io.write = true;
  io.bytes = std::min<uint64_t>((tasks.size() - begin) * kBlockSize, IoMeter::kPieceBytes);
  io.offset = uint64_t{tasks[begin].place} * kBlockSize;
  io.urgent = overlay_count_ * kBlockSize > kPileUp * options_.deferred_apply_bytes;
  void* ticket = meter->Begin(io);
  const size_t end = WriteTasks(tasks, begin, io.bytes);
  meter->End(ticket);
  metered_bytes_ += (end - begin) * kBlockSize;
  return end;
}

// Writes the tasks from `begin` on, so much or one piece of them, and waits. Returns where to go
// on.
size_t ExtentStore::WriteTasks(std::vector<ApplyTask>& tasks, size_t begin, uint64_t bytes_max) {
  struct Join {
    std::atomic<size_t> left{1};
    std::promise<void> all;
  };
  auto join = std::make_shared<Join>();
  uint64_t room = std::min(PiecewiseIo::BytesPerPiece(piece_bytes_), bytes_max) / kBlockSize;
  while (begin < tasks.size() && room > 0) {
    uint32_t run = 1;
    while (begin + run < tasks.size() && run < kRunMax && run < room &&
           tasks[begin + run].place == tasks[begin].place + run) {
      ++run;
    }
    Buffer out = tasks[begin].bytes;
    if (run > 1) {
      out = Buffer::Aligned(size_t{run} * kBlockSize);
      for (uint32_t i = 0; i < run; ++i) {
        std::memcpy(out.data() + size_t{i} * kBlockSize, tasks[begin + i].bytes.data(), kBlockSize);
      }
    }
    ++join->left;
    device_.WriteAsync(uint64_t{tasks[begin].place} * kBlockSize, out,
                       [&tasks, join, begin, run](Status status) {
                         for (uint32_t i = 0; i < run; ++i) tasks[begin + i].status = status;
                         if (--join->left == 0) join->all.set_value();
                       });
    begin += run;
    room -= run;
  }
  if (--join->left == 0) join->all.set_value();
  join->all.get_future().wait();
  return begin;
}

// All tasks of one object.
void ExtentStore::FinishTasks(std::vector<ApplyTask>& tasks, size_t begin, size_t end) {
  const ObjectPtr object = tasks[begin].object;
  std::unique_lock lock(object->mutex);
  WriteBatch batch;
  std::vector<Extent> freed;
  for (size_t i = begin; i < end; ++i) {
    ApplyTask& task = tasks[i];
    const auto it = object->overlays.find(task.block);
    const bool current = it != object->overlays.end() && it->second.version == task.version;
    if (it != object->overlays.end()) it->second.moving = false;
    if (!task.status.ok()) {  // the overlay stays in RocksDB and is tried again after a restart
      if (task.fresh) {
        allocator_.Free({task.place, 1});
        if (current) it->second.reserved = allocator_.Reserve(1, 1);
      }
      continue;
    }
    const uint32_t place_now = object->RefOf(task.block).place;
    const bool wanted = task.fresh ? place_now == task.old_place && it != object->overlays.end()
                                   : place_now == task.place;
    if (!wanted) {  // overwritten or cut away meanwhile
      if (task.fresh) allocator_.Free({task.place, 1});
      continue;
    }
    if (object->blocks.size() <= task.block) {
      object->blocks.resize((size_t{task.block} / kBlocksPerShard + 1) * kBlocksPerShard);
      Charge(*object);
    }
    if (task.fresh && place_now != 0) freed.push_back({place_now, 1});
    object->blocks[task.block] = {task.place, Crc32c(task.bytes.data(), kBlockSize)};
    if (it != object->overlays.end() && it->second.reserved) {  // a newer one reserved again
      it->second.reserved = false;
      allocator_.Unreserve();
    }
    if (current) DropOverlay(*object, task.block, &batch);
    PutShards(*object, task.block, task.block, &batch);
  }
  object->applying = false;
  for (const Extent& extent : object->parked) allocator_.Free(extent);
  object->parked.clear();
  const bool ends_spare = std::exchange(object->parks_spare, false);
  if (!batch.empty()) {
    if (object->exists) PutHead(*object, &batch);  // its shard bits may be new
    PushMoved(object, std::move(batch), std::move(freed));
  }
  lock.unlock();
  if (ends_spare) LeaveSpare();
}

void ExtentStore::PushMoved(const ObjectPtr& object, WriteBatch batch, std::vector<Extent> freed) {
  commits_.Push({std::move(batch), device_.completed_writes(), Duration(0),
                 [this, object, freed = std::move(freed)](const Status& status) {
                   if (!status.ok() || freed.empty()) return;
                   std::lock_guard guard(object->mutex);
                   ReleaseSpace(*object, freed);
                 }});
}

}  // namespace weir::osd
