// What an operation changes: the object in memory, its records in RocksDB, the space it frees. All
// of it under the object's mutex, together with the push to the commit queue, so that memory and
// RocksDB see the same order.
#include <algorithm>

#include "osd/store/extent_store.h"

namespace weir::osd {
namespace {

uint32_t BlocksOf(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kBlockSize - 1) / kBlockSize);
}

void AddFreed(std::vector<Extent>* freed, uint32_t place) {
  if (place == 0) return;
  if (!freed->empty() && freed->back().place + freed->back().count == place) {
    ++freed->back().count;
  } else {
    freed->push_back({place, 1});
  }
}

void Grow(Object& object, uint32_t blocks) {
  const size_t rounded = (size_t{blocks} + kBlocksPerShard - 1) / kBlocksPerShard * kBlocksPerShard;
  if (object.blocks.size() < rounded) object.blocks.resize(rounded);
}

}  // namespace

void ExtentStore::Execute(const OpPtr& op) {
  Object& object = *op->object;
  WriteBatch batch;
  std::vector<Extent> freed;
  std::vector<DeferredRef> deferred;
  if (op->kind == StoreOp::Kind::kDelete) {
    if (object.exists) Clear(object, &batch, &freed);
    return Commit(op, std::move(batch), std::move(freed), {});
  }
  if (op->kind == StoreOp::Kind::kPunch && !object.exists) return Commit(op, {}, {}, {});
  if (op->places.empty() && !ReserveOverlays(object, *op)) {
    op->failure = {ErrorCode::kNoSpace, device_.name() + ": full; delete something or add an OSD"};
    return;
  }
  if (!object.exists) ++object_count_;
  object.exists = true;
  object.version = NextVersion(&batch);
  if (!op->places.empty()) {
    PlaceImage(object, *op, &batch, &freed);
  } else {
    for (uint32_t i = 0; i < op->image.size() / kBlockSize; ++i) {
      op->patches[op->first_block + i] = op->image.Slice(size_t{i} * kBlockSize, kBlockSize);
    }
  }
  if (op->kind == StoreOp::Kind::kCopy) PlaceRefs(object, *op, &batch, &freed);
  if (op->kind == StoreOp::Kind::kPunch) MakeHole(object, *op, &batch, &freed);
  for (auto& [block, bytes] : op->patches) {
    PutOverlay(object, block, std::move(bytes), &batch);
    deferred.push_back({op->object, block, object.version});
  }
  if (op->kind == StoreOp::Kind::kTruncate) {
    CutTo(object, op->offset, &batch, &freed);
  } else if (op->kind != StoreOp::Kind::kPunch) {
    object.size = std::max(object.size, op->offset + std::max(op->data.size(), op->length));
  }
  PutHead(object, &batch);
  Commit(op, std::move(batch), std::move(freed), std::move(deferred));
}

// Whether an overlay of the block cannot be moved over the place that the block has.
bool ExtentStore::NeedsPlace(const Object& object, const StoreOp& op, uint32_t block) const {
  if (block - op.first_block < op.refs.size()) return true;  // gets another place, or none
  const uint32_t place = object.RefOf(block).place;
  return place == 0 || allocator_.IsShared(place);
}

// A place that an overlay needs later is kept now, so that moving it cannot fail.
bool ExtentStore::ReserveOverlays(Object& object, const StoreOp& op) {
  std::vector<uint32_t> blocks;
  for (uint32_t i = 0; i < op.image.size() / kBlockSize; ++i) blocks.push_back(op.first_block + i);
  for (const auto& [block, bytes] : op.patches) blocks.push_back(block);
  std::vector<uint32_t> reserved;
  for (const uint32_t block : blocks) {
    const auto old = object.overlays.find(block);
    const bool kept = old != object.overlays.end() && old->second.reserved;
    if (kept || !NeedsPlace(object, op, block)) continue;
    if (!allocator_.Reserve()) {
      for (size_t i = 0; i < reserved.size(); ++i) allocator_.Unreserve();
      return false;
    }
    reserved.push_back(block);
  }
  for (const uint32_t block : reserved) {
    const auto [it, added] = object.overlays.try_emplace(block);
    if (added) ++overlay_count_;
    it->second.reserved = true;
  }
  return true;
}

void ExtentStore::PutOverlay(Object& object, uint32_t block, Buffer bytes, WriteBatch* batch) {
  const auto [it, added] = object.overlays.try_emplace(block);
  if (added) ++overlay_count_;
  it->second.bytes = std::move(bytes);
  it->second.version = object.version;
  batch->Put(OverlayKey(object.id, block), EncodeOverlay(object.version, it->second.bytes.view()));
}

void ExtentStore::DropOverlay(Object& object, uint32_t block, WriteBatch* batch) {
  const auto it = object.overlays.find(block);
  if (it == object.overlays.end()) return;
  if (it->second.reserved) allocator_.Unreserve();
  object.overlays.erase(it);
  --overlay_count_;
  batch->Delete(OverlayKey(object.id, block));
}

void ExtentStore::PlaceImage(Object& object, StoreOp& op, WriteBatch* batch,
                             std::vector<Extent>* freed) {
  const auto count = static_cast<uint32_t>(op.crcs.size());
  Grow(object, op.first_block + count);
  uint32_t i = 0;
  for (const Extent& extent : op.places) {
    for (uint32_t j = 0; j < extent.count; ++j, ++i) {
      const uint32_t block = op.first_block + i;
      if (!object.overlays.empty()) DropOverlay(object, block, batch);
      AddFreed(freed, object.blocks[block].place);
      object.blocks[block] = {extent.place + j, op.crcs[i]};
    }
  }
  PutShards(object, op.first_block, op.first_block + count - 1, batch);
  Charge(object);
}

// The blocks share the places that the source had; what it had as overlays comes as patches.
void ExtentStore::PlaceRefs(Object& object, StoreOp& op, WriteBatch* batch,
                            std::vector<Extent>* freed) {
  const auto count = static_cast<uint32_t>(op.refs.size());
  Grow(object, op.first_block + count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t block = op.first_block + i;
    if (!op.patches.contains(block)) DropOverlay(object, block, batch);
    AddFreed(freed, object.blocks[block].place);
    object.blocks[block] = op.refs[i];
  }
  op.refs.clear();
  PutShards(object, op.first_block, op.first_block + count - 1, batch);
  Charge(object);
}

void ExtentStore::MakeHole(Object& object, StoreOp& op, WriteBatch* batch,
                           std::vector<Extent>* freed) {
  const uint32_t first = BlocksOf(op.offset);
  // The rest of the last block holds nothing but zeros.
  const uint64_t end =
      op.end() >= object.size ? uint64_t{BlocksOf(op.end())} * kBlockSize : op.end();
  const auto last = static_cast<uint32_t>(end / kBlockSize);
  if (first >= last) return;
  for (auto it = object.overlays.lower_bound(first); it != object.overlays.end();) {
    const uint32_t block = (it++)->first;
    if (block >= last) break;
    if (object.RefOf(block).place == 0) ++op.freed_blocks;
    DropOverlay(object, block, batch);
  }
  const auto known = std::min<uint32_t>(last, static_cast<uint32_t>(object.blocks.size()));
  for (uint32_t block = first; block < known; ++block) {
    if (object.blocks[block].place != 0) ++op.freed_blocks;
    AddFreed(freed, object.blocks[block].place);
    object.blocks[block] = {};
  }
  if (first < known) PutShards(object, first, known - 1, batch);
}

void ExtentStore::CutTo(Object& object, uint64_t size, WriteBatch* batch,
                        std::vector<Extent>* freed) {
  const uint32_t keep = BlocksOf(size);
  while (!object.overlays.empty() && object.overlays.rbegin()->first >= keep) {
    DropOverlay(object, object.overlays.rbegin()->first, batch);
  }
  for (size_t block = keep; block < object.blocks.size(); ++block) {
    AddFreed(freed, object.blocks[block].place);
    object.blocks[block] = {};
  }
  if (keep < object.blocks.size()) {
    PutShards(object, keep, static_cast<uint32_t>(object.blocks.size()) - 1, batch);
  }
  object.size = size;
}

void ExtentStore::Clear(Object& object, WriteBatch* batch, std::vector<Extent>* freed) {
  CutTo(object, 0, batch, freed);
  batch->Delete(HeadKey(object.id));
  object.exists = false;
  object.version = 0;
  object.blocks = {};
  --object_count_;
  Charge(object);
}

void ExtentStore::PutShards(Object& object, uint32_t first_block, uint32_t last_block,
                            WriteBatch* batch) {
  for (uint32_t shard = first_block / kBlocksPerShard; shard <= last_block / kBlocksPerShard;
       ++shard) {
    const std::span<const BlockRef> refs(&object.blocks[size_t{shard} * kBlocksPerShard],
                                         kBlocksPerShard);
    const bool any =
        std::any_of(refs.begin(), refs.end(), [](const BlockRef& ref) { return ref.place != 0; });
    const auto bit = static_cast<uint16_t>(1u << shard);
    if (any) {
      batch->Put(ShardKey(object.id, shard), EncodeShard(refs));
      object.shards |= bit;
    } else if ((object.shards & bit) != 0) {
      batch->Delete(ShardKey(object.id, shard));
      object.shards &= static_cast<uint16_t>(~bit);
    }
  }
}

void ExtentStore::PutHead(const Object& object, WriteBatch* batch) {
  batch->Put(HeadKey(object.id), EncodeHead({object.size, object.version, object.shards}));
}

void ExtentStore::Commit(const OpPtr& op, WriteBatch batch, std::vector<Extent> freed,
                         std::vector<DeferredRef> deferred) {
  const ObjectInfo info{op->object->size, op->object->version, op->freed_blocks * kBlockSize};
  op->data = op->image = {};
  commits_.Push({std::move(batch), op->data_stamp, op->patience,
                 [this, op, info, freed = std::move(freed),
                  deferred = std::move(deferred)](const Status& status) mutable {
                   if (!status.ok()) return op->done(status);
                   if (!freed.empty()) {
                     std::lock_guard lock(op->object->mutex);
                     ReleaseSpace(*op->object, freed);
                   }
                   if (!deferred.empty()) {
                     std::lock_guard lock(deferred_mutex_);
                     for (DeferredRef& ref : deferred) deferred_.push_back(std::move(ref));
                   }
                   if (!deferred.empty()) WakeApplier();
                   op->done(info);
                 }});
}

void ExtentStore::ReleaseSpace(Object& object, const std::vector<Extent>& freed) {
  if (object.applying) {
    object.parked.insert(object.parked.end(), freed.begin(), freed.end());
    return;
  }
  for (const Extent& extent : freed) allocator_.Free(extent);
}

}  // namespace weir::osd
