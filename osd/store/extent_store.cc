#include "osd/store/extent_store.h"

#include <algorithm>
#include <bit>
#include <future>
#include <set>
#include <unordered_map>

#include "common/disk/le_bytes.h"

namespace weir::osd {
namespace {

constexpr uint64_t kSequenceStep = 1 << 20;

uint32_t ToBlocks(uint64_t bytes) {
  return static_cast<uint32_t>(bytes / kBlockSize);
}

// What is overwritten on a full disk: a whole object at a time, and a round of small writes.
uint32_t SpareBlocks(uint32_t blocks) {
  return std::min(kBlocksPerObject + kBlocksPerObject / 2, blocks / 16);
}

}  // namespace

ExtentStore::ExtentStore(BlockDevice& device, std::unique_ptr<RawKvStore> kv, Region data,
                         const StoreOptions& options)
    : device_(device),
      kv_(std::move(kv)),
      options_(options),
      allocator_(
          ToBlocks(data.offset), ToBlocks(data.length),
          device.rotational() ? ExtentAllocator::Medium::kPlatter : ExtentAllocator::Medium::kFlash,
          SpareBlocks(ToBlocks(data.length))),
      writes_(device),
      commits_(*kv_, device, options.loop, options.wake) {
  // An overlay that goes before its write buffer is turned into a table never reaches a table.
  options_.deferred_apply_bytes =
      std::min(options_.deferred_apply_bytes, kv_->write_buffer_bytes() / 4);
  commits_.after_group = [this] { kv_full_ = !kv_->AwaitRoom(); };
}

ExtentStore::~ExtentStore() {
  (void)Close().ok();
}

Status ExtentStore::Recover() {
  WEIR_RETURN_IF_ERROR(RecoverSpace());
  WEIR_RETURN_IF_ERROR(RecoverOverlays());
  if (Result<std::string> mark = kv_->Get(kVersionMarkKey); mark.ok()) {
    next_sequence_ = std::max<uint64_t>(1, LeReader(*mark).Get<uint64_t>());
  } else if (mark.code() != ErrorCode::kNotFound) {
    return mark.status();
  }
  sequence_mark_ = next_sequence_ + kSequenceStep;
  WriteBatch batch;
  WEIR_RETURN_IF_ERROR(op_table_.Load(*kv_, &batch));
  std::string mark;
  PutLe(mark, sequence_mark_.load());
  batch.Put(kVersionMarkKey, mark);
  WEIR_RETURN_IF_ERROR(kv_->Apply(batch, Durability::kDurable));
  if (options_.wake) return {};
  loader_ = std::thread([this] {
    while (RunLoaderTask()) {
    }
  });
  applier_ = std::thread([this] {
    while (ApplyWhenDue()) {
    }
  });
  return {};
}

Status ExtentStore::RecoverSpace() {
  auto it = kv_->NewIterator();
  std::vector<BlockRef> refs(kBlocksPerShard);
  bool any_shared = false;
  uint32_t all_kept = 0;
  for (it->Seek("O"); it->Valid(); it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind == 'O' && !IsTombstone(it->value())) ++object_count_;
    if (key.kind != 'S') continue;
    std::fill(refs.begin(), refs.end(), BlockRef{});
    uint64_t kept = 0;
    WEIR_RETURN_IF_ERROR(DecodeShard(it->value(), refs, &kept));
    all_kept += static_cast<uint32_t>(std::popcount(kept));
    for (const BlockRef& ref : refs) {
      if (ref.place == 0 || allocator_.Take({ref.place, 1})) continue;
      if (!allocator_.Contains({ref.place, 1})) {
        return {ErrorCode::kCorrupt, device_.name() + ": block " + std::to_string(ref.place) +
                                         " of an object lies outside of the device; restore the "
                                         "OSD from its replicas"};
      }
      if (!allocator_.Share({{ref.place, 1}})) {
        return {ErrorCode::kNoSpace, device_.name() + ": more shared blocks than can be counted"};
      }
      any_shared = true;
    }
  }
  WEIR_RETURN_IF_ERROR(it->status());
  if (!allocator_.Reserve(all_kept, UINT32_MAX)) {
    return {ErrorCode::kCorrupt, device_.name() + ": space is kept for " +
                                     std::to_string(all_kept) +
                                     " blocks, and not so many are free; restore the OSD from its "
                                     "replicas"};
  }
  return any_shared ? CheckShared() : Status();
}

// Objects that share a block agree on its checksum; two that have got the same one by mistake do
// not.
Status ExtentStore::CheckShared() {
  constexpr size_t kMostChecked = size_t{1} << 22;  // so that memory is bounded
  std::unordered_map<uint32_t, uint32_t> crcs;
  std::vector<BlockRef> refs(kBlocksPerShard);
  auto it = kv_->NewIterator();
  for (it->Seek("S"); it->Valid() && ParseKey(it->key()).kind == 'S'; it->Next()) {
    std::fill(refs.begin(), refs.end(), BlockRef{});
    WEIR_RETURN_IF_ERROR(DecodeShard(it->value(), refs, nullptr));
    for (const BlockRef& ref : refs) {
      if (ref.place == 0 || !allocator_.IsShared(ref.place)) continue;
      if (crcs.size() >= kMostChecked) return {};
      if (crcs.try_emplace(ref.place, ref.crc).first->second == ref.crc) continue;
      return {ErrorCode::kCorrupt, device_.name() + ": block " + std::to_string(ref.place) +
                                       " belongs to two objects that are no copies of each "
                                       "other; restore the OSD from its replicas"};
    }
  }
  return it->status();
}

Status ExtentStore::RecoverOverlays() {
  auto it = kv_->NewIterator();
  for (it->Seek("D"); it->Valid(); it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind != 'D') break;
    WEIR_ASSIGN_OR_RETURN(const OverlayValue value, DecodeOverlay(it->value()));
    const ObjectPtr object = Lookup(key.id);
    if (!object->loaded) WEIR_RETURN_IF_ERROR(Load(*object));
    Overlay overlay{Buffer::Aligned(kBlockSize), value.version};
    std::memcpy(overlay.bytes.data(), value.block.data(), kBlockSize);
    const uint32_t place = object->RefOf(key.number).place;
    if (place == 0 || allocator_.IsShared(place)) {
      overlay.reserved = object->Unkeep(key.number) || allocator_.Reserve(1, UINT32_MAX);
    }
    object->overlays[key.number] = std::move(overlay);
    ++overlay_count_;
    deferred_.push_back({object, key.number, value.version});
  }
  return it->status();
}

void ExtentStore::Begin() {
  std::lock_guard lock(outstanding_mutex_);
  ++outstanding_;
}

void ExtentStore::End() {
  std::lock_guard lock(outstanding_mutex_);
  if (--outstanding_ == 0) outstanding_changed_.notify_all();
}

uint64_t ExtentStore::NextSequence(WriteBatch* batch) {
  const uint64_t sequence = next_sequence_++;
  uint64_t mark = sequence_mark_;
  // Raised half a step ahead, so that the new mark is durable long before it is reached.
  if (sequence + kSequenceStep / 2 > mark &&
      sequence_mark_.compare_exchange_strong(mark, mark + kSequenceStep)) {
    std::string value;
    PutLe(value, mark + kSequenceStep);
    batch->Put(kVersionMarkKey, value);
  }
  return sequence;
}

void ExtentStore::Delete(ObjectId id, Done done) {
  DeleteOne(id, [done = std::move(done)](const Result<ObjectInfo>& info) { done(info.status()); });
}

void ExtentStore::DeleteOne(ObjectId id, WriteDone done) {
  auto op = std::make_shared<StoreOp>();
  op->kind = StoreOp::Kind::kDelete;
  op->done = std::move(done);
  op->object = Lookup(id);
  Enqueue(std::move(op));
}

void ExtentStore::DeleteInode(InodeId inode, uint64_t first_index, DeletedDone done) {
  DeleteSome(inode, first_index, SIZE_MAX - 1, std::move(done));
}

// The first objects of an inode, so many at most; those in memory may not exist.
Result<std::set<ObjectId>> ExtentStore::FirstObjects(ObjectId from, size_t most) {
  std::set<ObjectId> ids;
  {
    std::lock_guard lock(cache_mutex_);
    for (auto it = cache_.lower_bound(from);
         it != cache_.end() && it->first.inode == from.inode && ids.size() < most; ++it) {
      ids.insert(it->first);
    }
  }
  auto it = kv_->NewIteratorBefore(HeadKeysEnd(from.inode));
  size_t stored = 0;
  for (it->Seek(HeadKey(from)); it->Valid() && stored < most; it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind != 'O' || key.id.inode != from.inode) break;
    if (IsTombstone(it->value())) continue;
    ids.insert(key.id);
    ++stored;
  }
  WEIR_RETURN_IF_ERROR(it->status());
  return ids;
}

void ExtentStore::DeleteSome(InodeId inode, uint64_t first_index, size_t most, DeletedDone done) {
  Begin();
  OnLoader([this, inode, first_index, most, done = std::move(done)] {
    OnLoop([this, most, done, ids = FirstObjects({inode, first_index}, most + 1)]() mutable {
      if (ids.ok()) {
        DeleteThese(std::move(*ids), most, done);
      } else {
        done(ids.status());
      }
      End();
    });
  });
}

// All but what is over `most`, where the caller is to go on.
void ExtentStore::DeleteThese(std::set<ObjectId> ids, size_t most, DeletedDone done) {
  DeletedObjects deleted;
  if (ids.size() > most) {
    const auto left = std::next(ids.begin(), static_cast<std::ptrdiff_t>(most));
    deleted.next_index = left->index;
    ids.erase(left, ids.end());
  }
  if (ids.empty()) return done(deleted);
  struct Join {
    std::mutex mutex;
    size_t left;
    Status first_error;
    DeletedObjects deleted;
    DeletedDone done;
  };
  auto join = std::make_shared<Join>();
  join->left = ids.size();
  join->deleted = deleted;
  join->done = std::move(done);
  for (const ObjectId& id : ids) {
    DeleteOne(id, [join](const Result<ObjectInfo>& info) {
      {
        std::lock_guard lock(join->mutex);
        if (info.ok()) join->deleted.freed_bytes += info->freed_bytes;
        if (!info.ok() && join->first_error.ok()) join->first_error = info.status();
        if (--join->left > 0) return;
      }
      if (!join->first_error.ok()) return join->done(join->first_error);
      join->done(join->deleted);
    });
  }
}

void ExtentStore::Stat(ObjectId id, InfoDone done) {
  Begin();
  const ObjectPtr object = Lookup(id);
  WhenLoaded(object, [this, object, done = std::move(done)](const Status& status) {
    if (status.ok()) {
      ObjectInfo info;
      {
        std::lock_guard lock(object->mutex);
        info = {object->size, object->data_version};
      }
      done(info);
    } else {
      done(status);
    }
    End();
  });
}

Result<std::optional<ObjectId>> ExtentStore::NextObject(ObjectId from) {
  const auto it = kv_->NewIterator();
  for (it->Seek(HeadKey(from)); it->Valid(); it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind != 'O') break;
    if (!IsTombstone(it->value())) return std::optional<ObjectId>(key.id);
  }
  WEIR_RETURN_IF_ERROR(it->status());
  return std::optional<ObjectId>();
}

uint64_t ExtentStore::LbaHint(ObjectId id, uint64_t offset) {
  if (const ObjectPtr object = FindCached(id)) {
    std::lock_guard lock(object->mutex);
    const BlockRef ref = object->RefOf(ToBlocks(offset));
    if (ref.place != 0) return uint64_t{ref.place} * kBlockSize;
  }
  const uint64_t hash = MixHash(id.inode.value, id.index) & ~(kMaxObjectSize - 1);
  return (hash + offset) % device_.size();
}

void ExtentStore::SetBackgroundMeter(std::shared_ptr<IoMeter> meter) {
  kv_->SetMeter(meter);
  const std::lock_guard lock(deferred_mutex_);
  meter_ = std::move(meter);
  if (meter_ == nullptr) return;
  metered_bytes_ = 0;
  unmetered_bytes_ = 0;
}

StoreStats ExtentStore::Stats() const {
  StoreStats stats;
  const uint64_t total = allocator_.total_blocks();
  stats.capacity_bytes = (total - allocator_.spare_blocks()) * kBlockSize;
  stats.used_bytes = (total - allocator_.free_blocks()) * kBlockSize;
  stats.shared_bytes = allocator_.shared_blocks() * kBlockSize;
  stats.objects = object_count_;
  stats.checksum_errors = checksum_errors_;
  stats.commits = commits_.commits();
  stats.committed_ops = commits_.committed_items();
  stats.background_bytes = kv_->metered_bytes() + metered_bytes_;
  stats.unmetered_bytes = kv_->unmetered_bytes() + unmetered_bytes_;
  return stats;
}

bool ExtentStore::Work() {
  const bool loaded = RunLoaderTask();
  return commits_.Work() || loaded;
}

bool ExtentStore::MoveOverlays() {
  return ApplyWhenDue();
}

// What was posted to the loop has run.
void ExtentStore::AwaitLoop() const {
  if (options_.loop == nullptr) return;
  std::promise<void> ran;
  options_.loop->Post([&ran] { ran.set_value(); });
  ran.get_future().wait();
}

Status ExtentStore::Close() {
  if (closed_) return {};
  closed_ = true;
  while (options_.wake && outstanding_ != 0 && Work()) {
  }
  {
    std::unique_lock lock(outstanding_mutex_);
    outstanding_changed_.wait(lock, [this] { return outstanding_ == 0; });
  }
  {
    std::lock_guard lock(deferred_mutex_);
    drain_ = true;
  }
  deferred_changed_.notify_one();
  while (options_.wake && MoveOverlays()) {
  }
  if (applier_.joinable()) applier_.join();
  {
    std::lock_guard lock(load_mutex_);
    stopping_ = true;
  }
  load_changed_.notify_one();
  if (loader_.joinable()) loader_.join();
  commits_.Stop();
  AwaitLoop();
  if (!commits_.failed()) return {};
  return {ErrorCode::kIo, device_.name() + ": a commit failed; what was not acknowledged is lost"};
}

}  // namespace weir::osd
