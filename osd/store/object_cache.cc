// Finding objects in memory, loading them from RocksDB, and dropping the least recently used.
#include "osd/store/extent_store.h"

namespace weir::osd {
namespace {

constexpr uint64_t kObjectBytes = 400;  // of an Object and its cache entry without the block map

}  // namespace

ObjectPtr ExtentStore::Lookup(ObjectId id) {
  std::lock_guard lock(cache_mutex_);
  const auto [it, added] = cache_.try_emplace(id);
  if (!added) {
    lru_.splice(lru_.end(), lru_, it->second.lru);
    return it->second.object;
  }
  ObjectPtr object = std::make_shared<Object>(id);
  it->second = {object, lru_.insert(lru_.end(), id)};
  object->charged = kObjectBytes;
  cache_bytes_ += kObjectBytes;
  EvictLocked();
  return object;
}

ObjectPtr ExtentStore::FindCached(ObjectId id) {
  std::lock_guard lock(cache_mutex_);
  const auto it = cache_.find(id);
  return it == cache_.end() ? nullptr : it->second.object;
}

// An object is dropped only when nobody but the cache knows it (operations, uncommitted batches and
// waiting overlays hold a pointer), and never with an overlay: one that could not be moved waits
// for the next start, when they are all read. Looks at a few candidates per call, so a call stays
// short.
void ExtentStore::EvictLocked() {
  const uint64_t limit = options_.memory_bytes / 2;
  for (int looked = 0; looked < 8 && cache_bytes_ > limit && !lru_.empty(); ++looked) {
    const auto it = cache_.find(lru_.front());
    bool needed = it->second.object.use_count() > 1;
    if (!needed) {
      std::lock_guard lock(it->second.object->mutex);
      needed = !it->second.object->overlays.empty();
      if (!needed) cache_bytes_ -= it->second.object->charged;
    }
    if (needed) {
      lru_.splice(lru_.end(), lru_, lru_.begin());
      continue;
    }
    lru_.pop_front();
    cache_.erase(it);
  }
}

void ExtentStore::Charge(Object& object) {
  const uint64_t now = kObjectBytes + object.blocks.capacity() * sizeof(BlockRef) +
                       object.kept.capacity() * sizeof(uint64_t);
  cache_bytes_ += now - object.charged;
  object.charged = now;
}

void ExtentStore::WhenLoaded(const ObjectPtr& object, std::function<void(const Status&)> run) {
  {
    std::lock_guard lock(object->mutex);
    if (!object->loaded) {
      object->waiting.push_back(std::move(run));
      RequestLoadLocked(object);
      return;
    }
  }
  run({});
}

void ExtentStore::RequestLoadLocked(const ObjectPtr& object) {
  if (object->loading) return;
  object->loading = true;
  OnLoader([this, object] { LoadNow(object); });
}

void ExtentStore::OnLoader(std::function<void()> task) {
  {
    std::lock_guard lock(load_mutex_);
    to_load_.push_back(std::move(task));
  }
  load_changed_.notify_one();
  if (options_.wake) options_.wake();
}

void ExtentStore::OnLoop(std::function<void()> task) const {
  options_.loop != nullptr ? options_.loop->Post(std::move(task)) : task();
}

bool ExtentStore::RunLoaderTask() {
  std::function<void()> task;
  {
    std::unique_lock lock(load_mutex_);
    if (!options_.wake) {
      load_changed_.wait(lock, [this] { return stopping_ || !to_load_.empty(); });
    }
    if (to_load_.empty()) return false;
    task = std::move(to_load_.front());
    to_load_.pop_front();
  }
  task();
  return true;
}

void ExtentStore::LoadNow(const ObjectPtr& object) {
  const Status status = Load(*object);
  OnLoop([this, object, status] {
    std::vector<std::function<void(const Status&)>> waiting;
    {
      std::lock_guard lock(object->mutex);
      waiting.swap(object->waiting);
    }
    for (auto& run : waiting) run(status);
    if (!status.ok()) FailQueue(object, status);
    Pump(object);
  });
}

Status ExtentStore::Load(Object& object) {
  Status status;
  OnodeHead head;
  std::vector<BlockRef> blocks;
  std::vector<uint64_t> kept;
  Result<std::string> value = kv_->Get(HeadKey(object.id));
  bool exists = value.ok();
  if (exists) {
    Result<OnodeHead> decoded = DecodeHead(*value);
    if (decoded.ok()) {
      head = *decoded;
    } else {
      status = decoded.status();
    }
  } else if (value.code() != ErrorCode::kNotFound) {
    status = value.status();
  }
  for (uint32_t shard = 0; status.ok() && shard < kShardsPerObject; ++shard) {
    if ((head.shards >> shard & 1) == 0) continue;
    blocks.resize(size_t{shard + 1} * kBlocksPerShard);
    const Result<std::string> record = kv_->Get(ShardKey(object.id, shard));
    const std::span<BlockRef> refs(&blocks[size_t{shard} * kBlocksPerShard], kBlocksPerShard);
    uint64_t bits = 0;
    status = record.ok() ? DecodeShard(*record, refs, &bits) : record.status();
    if (bits == 0) continue;
    kept.resize(kShardsPerObject);
    kept[shard] = bits;
  }
  std::lock_guard lock(object.mutex);
  object.loading = false;
  if (!status.ok()) return status.Annotate("loading an object");
  object.loaded = true;
  object.exists = exists && !head.tombstone;
  object.size = head.size;
  object.version = head.version;
  object.data_version = head.data_version;
  object.slot = head.slot;
  object.shards = head.shards;
  object.blocks = std::move(blocks);
  object.kept = std::move(kept);
  Charge(object);
  return {};
}

}  // namespace weir::osd
