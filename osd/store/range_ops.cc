// Holes and copies inside the store: which blocks change as a whole, and what their neighbours, of
// which only a part changes, look like afterwards. Execute (mutate.cc) makes it so in one batch.
//
// A copy takes a reference to each of the source's blocks at once, under the source's mutex: from
// then on the source may be overwritten or deleted. What it has as overlays is copied as overlays.
// Crash before the batch of the copy: nothing refers to the blocks but the source, if it still
// does. After: both do. The batches of the source's own blocks stand before it in the queue.
#include <algorithm>

#include "osd/store/extent_store.h"
#include "osd/store/object_bounds.h"

namespace weir::osd {
namespace {

uint32_t BlockOf(uint64_t offset) {
  return static_cast<uint32_t>(offset / kBlockSize);
}

struct Part {
  uint64_t begin = 0;  // in the object
  uint64_t end = 0;
};
// What of the block the operation covers.
Part PartOf(const StoreOp& op, uint32_t block) {
  const uint64_t start = uint64_t{block} * kBlockSize;
  return {std::max(start, op.offset), std::min(start + kBlockSize, op.end())};
}

// The block as it was, zeros in the part that changes.
Buffer BlockWithoutPart(const Buffer& old, uint32_t block, const Part& part) {
  Buffer bytes = Buffer::AlignedZeros(kBlockSize);
  if (!old.empty()) std::memcpy(bytes.data(), old.data(), old.size());
  std::memset(bytes.data() + (part.begin - uint64_t{block} * kBlockSize), 0, part.end - part.begin);
  return bytes;
}

std::vector<Extent> RunsOf(const std::vector<BlockRef>& refs) {
  std::vector<Extent> runs;
  for (const BlockRef& ref : refs) {
    if (ref.place == 0) continue;
    if (!runs.empty() && runs.back().place + runs.back().count == ref.place) {
      ++runs.back().count;
    } else {
      runs.push_back({ref.place, 1});
    }
  }
  return runs;
}

}  // namespace

bool CopySharesBlocks(uint64_t from_offset, uint64_t to_offset, uint64_t length) {
  return length >= kBlockSize && from_offset % kBlockSize == to_offset % kBlockSize;
}

void ObjectStore::Punch(ObjectId, uint64_t, uint64_t, WriteDone done) {
  done(Status(ErrorCode::kNotSupported, "this store makes no holes"));
}
void ObjectStore::Allocate(ObjectId, uint64_t, uint64_t, bool, WriteDone done) {
  done(Status(ErrorCode::kNotSupported, "this store keeps no space"));
}
void ObjectStore::GiveBack(ObjectId, uint64_t, uint64_t, WriteDone done) {
  done(Status(ErrorCode::kNotSupported, "this store keeps no space"));
}
void ObjectStore::Copy(const CopySource&, ObjectId, uint64_t, uint64_t, WriteDone done) {
  done(Status(ErrorCode::kNotSupported, "this store does not copy"));
}
void ObjectStore::Extents(ObjectId, uint64_t, uint64_t, ExtentsDone done) {
  done(Status(ErrorCode::kNotSupported, "this store does not know its holes"));
}
void ObjectStore::NextIndex(ObjectId, NextDone done) {
  done(Status(ErrorCode::kNotSupported, "this store does not list its objects"));
}

void ExtentStore::StartPunch(const OpPtr& op) {
  {
    std::lock_guard lock(op->object->mutex);
    const Object& object = *op->object;
    const uint64_t end = std::min(op->end(), object.size);
    for (const uint64_t at : {op->offset, op->end()}) {
      const uint32_t block = BlockOf(at);
      const bool inside = at % kBlockSize != 0 && at < object.size && op->offset < end;
      const bool has_bytes = object.RefOf(block).place != 0 || object.overlays.contains(block);
      if (!inside || !has_bytes) continue;
      if (op->edges.empty() || op->edges.back() != block) op->edges.push_back(block);
    }
  }
  PunchEdges(op);
}

// Also of an allocation that makes zeros.
void ExtentStore::PunchEdges(const OpPtr& op) {
  if (op->edges.empty()) return Ready(op);
  const uint32_t block = op->edges.back();
  ReadLoaded(
      op->object, uint64_t{block} * kBlockSize, kBlockSize,
      [this, op, block](const Result<ObjectData>& old) {
        if (!old.ok()) return Fail(op, old.status());
        op->patches[block] = BlockWithoutPart(old->bytes, block, PartOf(*op, block));
        op->edges.pop_back();
        PunchEdges(op);
      },
      0);
}

void ExtentStore::PlanCopy(const OpPtr& op) {
  const bool alike = CopySharesBlocks(op->source_offset, op->offset, op->length);
  if (!alike || !TakeSourceBlocks(op)) return CopyBytes(op);
  const uint32_t shared_end = op->first_block + static_cast<uint32_t>(op->refs.size());
  if (op->offset % kBlockSize != 0) op->edges.push_back(BlockOf(op->offset));
  if (uint64_t{shared_end} * kBlockSize < op->end()) op->edges.push_back(shared_end);
  CopyEdges(op);
}

// Finds the whole blocks and takes references to them; false: there is none, or it is better to
// copy bytes.
bool ExtentStore::TakeSourceBlocks(const OpPtr& op) {
  uint64_t size = 0;
  {
    std::lock_guard lock(op->object->mutex);
    size = op->object->size;
  }
  std::lock_guard lock(op->source->mutex);
  const Object& source = *op->source;
  const uint32_t first = BlockOf(op->offset + kBlockSize - 1);
  // With nothing behind it on either side the last block counts as a whole one.
  const bool ends = op->end() >= size && op->source_offset + op->length >= source.size;
  const uint32_t last = BlockOf(ends ? op->end() + kBlockSize - 1 : op->end());
  if (first >= last) return false;
  op->first_block = first;
  op->refs.resize(last - first);
  const uint32_t source_first =
      BlockOf(op->source_offset + (uint64_t{first} * kBlockSize - op->offset));
  for (uint32_t i = 0; i < last - first; ++i) {
    const auto overlay = source.overlays.find(source_first + i);
    if (overlay != source.overlays.end()) {
      op->patches[first + i] = overlay->second.bytes;
    } else {
      op->refs[i] = source.RefOf(source_first + i);
    }
  }
  if (allocator_.Share(RunsOf(op->refs))) return true;
  op->refs.clear();
  op->patches.clear();
  return false;
}

void ExtentStore::CopyEdges(const OpPtr& op) {
  if (op->edges.empty()) return Ready(op);
  const uint32_t block = op->edges.back();
  const Part part = PartOf(*op, block);
  auto with_old = [this, op, block, part](const Buffer& bytes, const Result<ObjectData>& old) {
    if (!old.ok()) return Fail(op, old.status());
    Buffer patch = BlockWithoutPart(old->bytes, block, part);
    if (!bytes.empty()) {
      std::memcpy(patch.data() + (part.begin - uint64_t{block} * kBlockSize), bytes.data(),
                  bytes.size());
    }
    op->patches[block] = std::move(patch);
    op->edges.pop_back();
    CopyEdges(op);
  };
  ReadLoaded(
      op->source, op->source_offset + (part.begin - op->offset), part.end - part.begin,
      [this, op, block, with_old](const Result<ObjectData>& source) {
        if (!source.ok()) return Fail(op, source.status());
        ReadLoaded(
            op->object, uint64_t{block} * kBlockSize, kBlockSize,
            [with_old, read = source->bytes](const Result<ObjectData>& old) {
              with_old(read, old);
            },
            0);
      },
      0);
}

void ExtentStore::CopyBytes(const OpPtr& op) {
  ReadLoaded(
      op->source, op->source_offset, op->length,
      [this, op](Result<ObjectData> read) {
        if (!read.ok()) return Fail(op, read.status());
        op->data = std::move(read->bytes);
        if (op->data.size() < op->length) {  // the source ends before
          Buffer whole = Buffer::AlignedZeros(op->length);
          if (!op->data.empty()) std::memcpy(whole.data(), op->data.data(), op->data.size());
          op->data = std::move(whole);
        }
        op->kind = StoreOp::Kind::kWrite;
        StartWrite(op);
      },
      0);
}

// Of an operation that failed.
void ExtentStore::DropRefs(StoreOp& op) {
  for (const Extent& run : RunsOf(op.refs)) allocator_.Free(run);
  op.refs.clear();
}

void ExtentStore::Extents(ObjectId id, uint64_t offset, uint64_t length, ExtentsDone done) {
  if (!Fits(offset, length)) return done(BeyondObject("question"));
  Begin();
  const ObjectPtr object = Lookup(id);
  WhenLoaded(object, [this, object, offset, length, done = std::move(done)](const Status& status) {
    std::vector<ByteRange> ranges;
    if (status.ok()) {
      std::lock_guard lock(object->mutex);
      const uint64_t end = std::min(offset + length, object->size);
      for (uint64_t at = offset; at < end;) {
        const uint32_t block = BlockOf(at);
        const uint64_t next = std::min(end, uint64_t{block + 1} * kBlockSize);
        const bool data = object->RefOf(block).place != 0 || object->overlays.contains(block);
        if (data && !ranges.empty() && ranges.back().offset + ranges.back().length == at) {
          ranges.back().length += next - at;
        } else if (data) {
          ranges.push_back({at, next - at});
        }
        at = next;
      }
    }
    if (status.ok()) {
      done(std::move(ranges));
    } else {
      done(status);
    }
    End();
  });
}

void ExtentStore::NextIndex(ObjectId id, NextDone done) {
  Begin();
  OnLoader([this, id, done = std::move(done)] {
    OnLoop([this, done, next = FindNextIndex(id)] {
      done(next);
      End();
    });
  });
}

Result<uint64_t> ExtentStore::FindNextIndex(ObjectId id) {
  uint64_t next = UINT64_MAX;
  if (id.index == UINT64_MAX) return next;
  const ObjectId from{id.inode, id.index + 1};
  {
    // Some of these may not exist: then the caller finds nothing there and asks again.
    std::lock_guard lock(cache_mutex_);
    const auto it = cache_.lower_bound(from);
    if (it != cache_.end() && it->first.inode == id.inode) next = it->first.index;
  }
  auto it = kv_->NewIteratorBefore(HeadKeysEnd(id.inode));
  for (it->Seek(HeadKey(from)); it->Valid(); it->Next()) {
    const ParsedKey key = ParseKey(it->key());
    if (key.kind != 'O' || key.id.inode != id.inode) break;
    if (IsTombstone(it->value())) continue;
    next = std::min(next, key.id.index);
    break;
  }
  WEIR_RETURN_IF_ERROR(it->status());
  return next;
}

}  // namespace weir::osd
