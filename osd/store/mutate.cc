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

// How many blocks take space from now on.
uint64_t NewBlocks(const Object& object, const StoreOp& op) {
  uint64_t count = 0;
  const auto whole = static_cast<uint32_t>(op.image.size() / kBlockSize);
  for (uint32_t i = 0; i < whole; ++i) count += object.TakesSpace(op.first_block + i) ? 0 : 1;
  for (uint32_t i = 0; i < op.refs.size(); ++i) {
    count += op.refs[i].place == 0 || object.TakesSpace(op.first_block + i) ? 0 : 1;
  }
  for (const auto& [block, bytes] : op.patches) count += object.TakesSpace(block) ? 0 : 1;
  for (const uint32_t block : op.claimed) count -= object.TakesSpace(block) ? 0 : 1;
  return count;
}

}  // namespace

void ExtentStore::Execute(const OpPtr& op) {
  Object& object = *op->object;
  WriteBatch batch;
  const auto table = LockTable(object, *op);
  if (op->HasId() && !Admit(op, &batch)) return;
  if (op->failure.ok()) CheckExpected(object, *op);
  if (!op->failure.ok()) return Refuse(op, std::move(batch));
  if (op->kind == StoreOp::Kind::kDelete) return Delete(op, std::move(batch));
  std::vector<Extent> freed;
  std::vector<DeferredRef> deferred;
  const bool only_takes_away =
      op->kind == StoreOp::Kind::kPunch || op->kind == StoreOp::Kind::kGiveBack;
  if (only_takes_away && !object.exists) {
    RecordDone(object, *op, &batch);
    return Commit(op, std::move(batch), {}, {});
  }
  op->grown_blocks = NewBlocks(object, *op);
  const bool allocates = op->kind == StoreOp::Kind::kAllocate;
  if ((allocates && !ReserveToKeep(object, *op)) ||
      (op->places.empty() && !ReserveOverlays(object, *op))) {
    op->failure = NoSpace();
    return Refuse(op, std::move(batch));
  }
  if (!object.exists) {
    ++object_count_;
    op_table_.Revive(object.id);
  }
  object.exists = true;
  object.version = object.data_version = NextVersion(object, *op, &batch);
  if (!op->places.empty()) {
    PlaceImage(object, *op, &batch, &freed);
  } else {
    for (uint32_t i = 0; i < op->image.size() / kBlockSize; ++i) {
      op->patches[op->first_block + i] = op->image.Slice(size_t{i} * kBlockSize, kBlockSize);
    }
  }
  if (op->kind == StoreOp::Kind::kCopy) PlaceRefs(object, *op, &batch, &freed);
  if (op->kind == StoreOp::Kind::kPunch) Punch(object, *op, &batch, &freed);
  if (allocates) KeepBlocks(object, *op, &batch, &freed);
  if (op->kind == StoreOp::Kind::kGiveBack) GiveBackBlocks(object, *op, &batch);
  for (auto& [block, bytes] : op->patches) {
    PutOverlay(object, block, std::move(bytes), &batch);
    deferred.push_back({op->object, block, object.version.sequence});
  }
  if (op->kind == StoreOp::Kind::kTruncate) {
    CutTo(object, op->offset, *op, &batch, &freed);
  } else if (op->kind == StoreOp::Kind::kWrite || op->kind == StoreOp::Kind::kCopy) {
    object.size = std::max(object.size, op->offset + std::max(op->data.size(), op->length));
  }
  PutIndex(object, op->terms.slot, &batch);
  PutHead(object, &batch);
  RecordDone(object, *op, &batch);
  Commit(op, std::move(batch), std::move(freed), std::move(deferred));
}

void ExtentStore::Delete(const OpPtr& op, WriteBatch batch) {
  Object& object = *op->object;
  std::vector<Extent> freed;
  if (object.exists) Clear(object, *op, &batch, &freed);
  Commit(op, std::move(batch), std::move(freed), {});
}

// Whether an overlay of the block cannot be moved over the place that the block has.
bool ExtentStore::NeedsPlace(const Object& object, const StoreOp& op, uint32_t block) const {
  if (block - op.first_block < op.refs.size()) return true;  // gets another place, or none
  const uint32_t place = object.RefOf(block).place;
  return place == 0 || allocator_.IsShared(place);
}

Status ExtentStore::NoSpace() const {
  return {ErrorCode::kNoSpace, device_.name() + ": full; delete something or add an OSD"};
}

// A place that an overlay needs later is kept now, so that moving it cannot fail.
bool ExtentStore::ReserveOverlays(Object& object, const StoreOp& op) {
  std::vector<uint32_t> blocks;
  for (uint32_t i = 0; i < op.image.size() / kBlockSize; ++i) blocks.push_back(op.first_block + i);
  for (const auto& [block, bytes] : op.patches) blocks.push_back(block);
  std::vector<uint32_t> reserved;
  uint32_t taken = 0;
  for (const uint32_t block : blocks) {
    const auto old = object.overlays.find(block);
    const bool known = old != object.overlays.end();
    if ((known && old->second.reserved) || !NeedsPlace(object, op, block)) continue;
    reserved.push_back(block);
    if (object.IsKept(block)) continue;
    // The one that is being moved gives its block back when this one has come instead.
    if (!allocator_.Reserve(1, known && old->second.moving ? UINT32_MAX : 0)) {
      allocator_.Unreserve(taken);
      return false;
    }
    ++taken;
  }
  for (const uint32_t block : reserved) {
    const auto [it, added] = object.overlays.try_emplace(block);
    if (added) ++overlay_count_;
    it->second.reserved = true;
    object.Unkeep(block);
  }
  return true;
}

// Its block is free for others; the caller stores the shard.
void ExtentStore::Unkeep(Object& object, uint32_t block) {
  if (object.Unkeep(block)) allocator_.Unreserve();
}

void ExtentStore::PutOverlay(Object& object, uint32_t block, Buffer bytes, WriteBatch* batch) {
  const auto [it, added] = object.overlays.try_emplace(block);
  if (added) ++overlay_count_;
  it->second.bytes = std::move(bytes);
  it->second.version = object.version.sequence;
  batch->Put(OverlayKey(object.id, block),
             EncodeOverlay(object.version.sequence, it->second.bytes.view()));
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
  object.GrowTo(op.first_block + count);
  uint32_t i = 0;
  for (const Extent& extent : op.places) {
    for (uint32_t j = 0; j < extent.count; ++j, ++i) {
      const uint32_t block = op.first_block + i;
      if (!object.overlays.empty()) DropOverlay(object, block, batch);
      if (!object.kept.empty()) Unkeep(object, block);
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
  object.GrowTo(op.first_block + count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t block = op.first_block + i;
    if (!op.patches.contains(block)) {
      if (op.refs[i].place == 0 && object.TakesSpace(block)) ++op.freed_blocks;
      DropOverlay(object, block, batch);
    }
    Unkeep(object, block);
    AddFreed(freed, object.blocks[block].place);
    object.blocks[block] = op.refs[i];
  }
  op.refs.clear();
  PutShards(object, op.first_block, op.first_block + count - 1, batch);
  Charge(object);
}

void ExtentStore::Punch(Object& object, StoreOp& op, WriteBatch* batch,
                        std::vector<Extent>* freed) {
  const uint32_t first = BlocksOf(op.offset);
  // The rest of the last block holds nothing but zeros.
  const uint64_t end =
      op.end() >= object.size ? uint64_t{BlocksOf(op.end())} * kBlockSize : op.end();
  op.freed_blocks = MakeHole(object, first, static_cast<uint32_t>(end / kBlockSize), batch, freed);
}

// Returns how many blocks of [first, last) took space.
uint64_t ExtentStore::MakeHole(Object& object, uint32_t first, uint32_t last, WriteBatch* batch,
                               std::vector<Extent>* freed) {
  uint64_t count = 0;
  for (auto it = object.overlays.lower_bound(first); it != object.overlays.end();) {
    const uint32_t block = (it++)->first;
    if (block >= last) break;
    if (object.RefOf(block).place == 0 && !object.IsKept(block)) ++count;
    DropOverlay(object, block, batch);
  }
  const auto known = std::min<uint32_t>(last, static_cast<uint32_t>(object.blocks.size()));
  for (uint32_t block = first; block < known; ++block) {
    if (object.TakesSpace(block)) ++count;
    Unkeep(object, block);
    AddFreed(freed, object.blocks[block].place);
    object.blocks[block] = {};
  }
  if (first < known) PutShards(object, first, known - 1, batch);
  return count;
}

void ExtentStore::CutTo(Object& object, uint64_t size, StoreOp& op, WriteBatch* batch,
                        std::vector<Extent>* freed) {
  op.freed_blocks = MakeHole(object, BlocksOf(size), UINT32_MAX, batch, freed);
  object.size = size;
}

void ExtentStore::Clear(Object& object, StoreOp& op, WriteBatch* batch,
                        std::vector<Extent>* freed) {
  CutTo(object, 0, op, batch, freed);
  object.exists = false;
  object.data_version = {};
  object.version = NextVersion(object, op, batch);
  PutTombstone(object, std::nullopt, batch);
  object.blocks = {};
  object.kept = {};
  --object_count_;
  Charge(object);
}

void ExtentStore::PutShards(Object& object, uint32_t first_block, uint32_t last_block,
                            WriteBatch* batch) {
  for (uint32_t shard = first_block / kBlocksPerShard; shard <= last_block / kBlocksPerShard;
       ++shard) {
    const std::span<const BlockRef> refs(&object.blocks[size_t{shard} * kBlocksPerShard],
                                         kBlocksPerShard);
    const uint64_t kept = object.kept.empty() ? 0 : object.kept[shard];
    const bool any = kept != 0 || std::any_of(refs.begin(), refs.end(),
                                              [](const BlockRef& ref) { return ref.place != 0; });
    const auto bit = static_cast<uint16_t>(1u << shard);
    if (any) {
      batch->Put(ShardKey(object.id, shard), EncodeShard(refs, kept));
      object.shards |= bit;
    } else if ((object.shards & bit) != 0) {
      batch->Delete(ShardKey(object.id, shard));
      object.shards &= static_cast<uint16_t>(~bit);
    }
  }
}

void ExtentStore::PutHead(const Object& object, WriteBatch* batch) {
  batch->Put(HeadKey(object.id), EncodeHead({.size = object.size,
                                             .version = object.version,
                                             .data_version = object.data_version,
                                             .shards = object.shards,
                                             .tombstone = !object.exists,
                                             .slot = object.slot}));
}

// Of an object with a new version, in the slot that the sender said, if it did.
void ExtentStore::PutIndex(Object& object, std::optional<SlotId> slot, WriteBatch* batch) {
  if (slot.has_value() && object.slot.has_value() && *slot != *object.slot) {
    batch->Delete(IndexKey(*object.slot, object.id));
  }
  if (slot.has_value()) object.slot = slot;
  if (object.slot.has_value()) {
    batch->Put(IndexKey(*object.slot, object.id), EncodeVersion(object.version));
  }
}

// Sequences are the store's own as long as no chain orders operations; they grow over all objects.
replication::Version ExtentStore::NextVersion(const Object& object, const StoreOp& op,
                                              WriteBatch* batch) {
  return {std::max(object.version.chain, op.terms.chain_version), NextSequence(batch)};
}

void ExtentStore::Commit(const OpPtr& op, WriteBatch batch, std::vector<Extent> freed,
                         std::vector<DeferredRef> deferred) {
  ObjectInfo info{.size = op->object->size,
                  .version = op->object->data_version,
                  .freed_bytes = op->freed_blocks * kBlockSize,
                  .grown_bytes = op->grown_blocks * kBlockSize,
                  .kept = std::move(op->keeps)};
  if (op->terms.append) info.append_offset = op->offset;
  op->data = op->image = {};
  commits_.Push({std::move(batch), op->data_stamp, op->patience,
                 [this, op, info = std::move(info), freed = std::move(freed),
                  deferred = std::move(deferred)](const Status& status) mutable {
                   if (status.ok() && !freed.empty()) {
                     std::lock_guard lock(op->object->mutex);
                     ReleaseSpace(*op->object, freed);
                   }
                   if (op->has_spare) EndSpare(*op->object);
                   if (!status.ok()) return op->done(status);
                   if (!deferred.empty()) {
                     std::lock_guard lock(deferred_mutex_);
                     for (DeferredRef& ref : deferred) deferred_.push_back(std::move(ref));
                   }
                   if (!deferred.empty()) WakeApplier();
                   op->done(std::move(info));
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
