// Space that is kept for blocks before they are written, and writes on a full disk.
//
// A kept block has no place: the allocator counts it, the shard has a bit for it, and it reads as
// zeros. Whatever gives the block bytes of its own uses the bit up: a write that got other places
// returns the count when it executes, a small write passes it on to its overlay. On a full disk a
// write gets no other places; then it comes here, at the head of its object's queue. What is kept
// for its blocks it claims. For blocks that it overwrites it may take the spare ones, as those that
// it frees make up for them: one operation at a time, until it is durable.
#include <algorithm>

#include "osd/store/extent_store.h"
#include "osd/store/object_bounds.h"

namespace weir::osd {
namespace {

struct Blocks {
  uint32_t first = 0;
  uint32_t last = 0;  // behind them
  [[nodiscard]] bool Has(uint32_t block) const { return block >= first && block < last; }
};

uint32_t RoundedUp(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kBlockSize - 1) / kBlockSize);
}

Blocks TouchedBy(const StoreOp& op) {
  const auto first = static_cast<uint32_t>(op.offset / kBlockSize);
  return {first, op.length == 0 ? first : RoundedUp(op.end())};
}

// Those of which nothing is left. The rest of the last block holds nothing but zeros.
Blocks ZeroedBy(const Object& object, const StoreOp& op) {
  if (!op.zeros || op.length == 0) return {};
  const uint32_t last =
      op.end() >= object.size ? RoundedUp(op.end()) : static_cast<uint32_t>(op.end() / kBlockSize);
  return {RoundedUp(op.offset), last};
}

void AddBlock(std::vector<ByteRange>* ranges, uint32_t block) {
  const uint64_t offset = uint64_t{block} * kBlockSize;
  if (!ranges->empty() && ranges->back().offset + ranges->back().length == offset) {
    ranges->back().length += kBlockSize;
  } else {
    ranges->push_back({offset, kBlockSize});
  }
}

}  // namespace

// Writing or overwriting the block needs no room.
bool ExtentStore::HasOwnSpace(const Object& object, uint32_t block) const {
  if (object.IsKept(block)) return true;
  const auto overlay = object.overlays.find(block);
  if (overlay != object.overlays.end() && (overlay->second.reserved || overlay->second.moving)) {
    return true;
  }
  const uint32_t place = object.RefOf(block).place;
  return place != 0 && !allocator_.IsShared(place);
}

// What only takes more is decided when it is executed.
void ExtentStore::StartAllocate(const OpPtr& op) {
  if (KvIsFull()) return Fail(op, NoSpace());
  if (!op->zeros) return Ready(op);
  AllocateZeros(op);
}

// Places of blocks that become zeros are free only when that is durable; until then the blocks that
// are kept instead are there besides.
void ExtentStore::AllocateZeros(const OpPtr& op) {
  uint32_t more = 0, instead = 0;
  {
    std::lock_guard lock(op->object->mutex);
    const Object& object = *op->object;
    const Blocks zeroed = ZeroedBy(object, *op);
    for (uint32_t block = zeroed.first; block < zeroed.last; ++block) {
      if (object.IsKept(block)) continue;
      ++more;
      if (HasOwnSpace(object, block)) ++instead;
    }
  }
  if (allocator_.Reserve(more, op->has_spare ? instead : 0)) {
    op->reserved = more;
    return StartPunch(op);
  }
  if (op->has_spare || instead == 0) return Fail(op, NoSpace());
  WithSpare(op);
}

// The blocks for which the operation will keep one; their number is reserved for it then.
bool ExtentStore::ReserveToKeep(Object& object, StoreOp& op) {
  const Blocks touched = TouchedBy(op), zeroed = ZeroedBy(object, op);
  for (uint32_t block = touched.first; block < touched.last; ++block) {
    if (object.IsKept(block) || op.patches.contains(block)) continue;
    if (zeroed.Has(block) || !HasOwnSpace(object, block)) op.to_keep.push_back(block);
  }
  const auto needed = static_cast<uint32_t>(op.to_keep.size());
  if (needed > op.reserved && !allocator_.Reserve(needed - op.reserved)) return false;
  if (needed < op.reserved) allocator_.Unreserve(op.reserved - needed);
  op.reserved = needed;
  return true;
}

void ExtentStore::KeepBlocks(Object& object, StoreOp& op, WriteBatch* batch,
                             std::vector<Extent>* freed) {
  const Blocks touched = TouchedBy(op), zeroed = ZeroedBy(object, op);
  if (touched.first >= touched.last) return;
  for (const uint32_t block : op.to_keep) {
    const bool grows = !object.TakesSpace(block);
    if (grows) ++op.grown_blocks;
    if (grows || !zeroed.Has(block)) AddBlock(&op.keeps, block);
  }
  for (uint32_t block = zeroed.first; block < zeroed.last; ++block) object.Unkeep(block);
  MakeHole(object, zeroed.first, zeroed.last, batch, freed);
  object.GrowTo(touched.last);
  for (uint32_t block = zeroed.first; block < zeroed.last; ++block) object.Keep(block);
  for (const uint32_t block : op.to_keep) object.Keep(block);
  op.reserved = 0;
  PutShards(object, touched.first, touched.last - 1, batch);
  Charge(object);
}

void ExtentStore::GiveBackBlocks(Object& object, StoreOp& op, WriteBatch* batch) {
  const Blocks touched = TouchedBy(op);
  const auto known = std::min(touched.last, static_cast<uint32_t>(object.blocks.size()));
  if (touched.first >= known) return;
  for (uint32_t block = touched.first; block < known; ++block) {
    if (object.IsKept(block) && !object.HasBytes(block)) ++op.freed_blocks;
    Unkeep(object, block);
  }
  PutShards(object, touched.first, known - 1, batch);
}

void ExtentStore::WriteWhenFull(const OpPtr& op) {
  if (op->early) {  // only at the head does it know what is kept
    {
      std::lock_guard lock(op->object->mutex);
      op->early = op->started = false;
      op->image = {};
    }
    return Pump(op->object);
  }
  const bool small = op->image.size() <= options_.deferred_write_max &&
                     overlay_count_ * kBlockSize < 4 * options_.deferred_apply_bytes;
  if (small) return Ready(op);  // over what is there it needs no place
  {
    std::lock_guard lock(op->object->mutex);
    Claim(*op->object, *op);
  }
  if (AllocateClaimed(op)) return WritePlaces(op);
  if (op->overwrites == 0) return Fail(op, NoSpace());
  WithSpare(op);
}

void ExtentStore::Claim(Object& object, StoreOp& op) const {
  for (uint32_t i = 0; i < op.image.size() / kBlockSize; ++i) {
    const uint32_t block = op.first_block + i;
    const auto overlay = object.overlays.find(block);
    if (object.Unkeep(block)) {
      op.claimed.push_back(block);
    } else if (overlay != object.overlays.end() && overlay->second.reserved) {
      overlay->second.reserved = false;
      op.claimed.push_back(block);
    } else if (HasOwnSpace(object, block)) {
      ++op.overwrites;
    }
  }
}

bool ExtentStore::AllocateClaimed(const OpPtr& op) {
  op->places = allocator_.Allocate(
      static_cast<uint32_t>(op->image.size() / kBlockSize),
      {static_cast<uint32_t>(op->claimed.size()), op->has_spare ? op->overwrites : 0});
  return !op->places.empty();
}

// Everything as it was, for an operation that failed.
void ExtentStore::Unclaim(const OpPtr& op) {
  {
    std::lock_guard lock(op->object->mutex);
    for (const uint32_t block : op->claimed) {
      op->object->GrowTo(block + 1);
      op->object->Keep(block);
    }
  }
  if (!op->places.empty()) {
    allocator_.Return(op->places, static_cast<uint32_t>(op->claimed.size()));
  }
  allocator_.Unreserve(op->reserved);
  if (op->has_spare) LeaveSpare();
}

// Goes on when the spare blocks are the operation's.
void ExtentStore::WithSpare(const OpPtr& op) {
  {
    std::lock_guard lock(spare_mutex_);
    if (spare_user_ != nullptr) {
      spare_queue_.push_back(op);
      return;
    }
    spare_user_ = op;
  }
  TakeSpare(op);
}

void ExtentStore::TakeSpare(const OpPtr& op) {
  op->has_spare = true;
  if (op->kind == StoreOp::Kind::kAllocate) return AllocateZeros(op);
  if (AllocateClaimed(op)) return WritePlaces(op);
  Fail(op, NoSpace());
}

// What the operation freed is free.
void ExtentStore::LeaveSpare() {
  OpPtr next;
  {
    std::lock_guard lock(spare_mutex_);
    spare_user_ = nullptr;
    if (spare_queue_.empty()) return;
    next = spare_user_ = std::move(spare_queue_.front());
    spare_queue_.pop_front();
  }
  TakeSpare(next);
}

void ExtentStore::EndSpare(Object& object) {
  {
    std::lock_guard lock(object.mutex);
    if (object.applying && !object.parked.empty()) {
      object.parks_spare = true;
      return;
    }
  }
  LeaveSpare();
}

}  // namespace weir::osd
