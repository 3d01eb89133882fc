// Preparing an operation: reading the edges of partial blocks, building whole blocks, writing them
// to fresh places. What it then changes is mutate.cc.
//
// Operations of one object stand in its queue in call order and change it in that order. A large
// aligned write does not depend on the object, so its data is written at once; everything else is
// started when it is at the head, where the object holds still.
#include <algorithm>

#include "common/base/crc32c.h"
#include "osd/store/extent_store.h"
#include "osd/store/object_bounds.h"
#include "osd/store/piecewise_io.h"

namespace weir::osd {
namespace {

constexpr uint64_t kDeferDepthMax = 4;  // operations under way

bool IsWholeBlocks(const StoreOp& op) {
  return op.offset % kBlockSize == 0 && op.data.size() % kBlockSize == 0 && !op.data.empty();
}

static_assert(Crc32cOfBlocks::kBlock == kBlockSize);

uint32_t Joined(const std::vector<uint32_t>& crcs) {
  Crc32cOfBlocks all;
  for (const uint32_t crc : crcs) all.Add(crc);
  return all.joined();
}

bool IsIntact(const StoreOp& op, uint32_t crc) {
  return !op.expected_crc.has_value() || *op.expected_crc == crc;
}

Status DamagedOnItsWay() {
  return {ErrorCode::kBadMessage, "payload was damaged on its way (crc32c): send it again"};
}

}  // namespace

// Through the log a small write waits for one flush instead of two, but costs twice the processor
// time: with many under way the flushes are shared anyway, and whole blocks go to their places.
bool ExtentStore::DeferThis(const StoreOp& op) const {
  return op.data.size() <= options_.deferred_write_max &&
         (outstanding_ <= kDeferDepthMax || !IsWholeBlocks(op)) &&
         overlay_count_ * kBlockSize < 4 * options_.deferred_apply_bytes;
}

// Compactions may have made room since the last commit, and there is none while writes are refused.
bool ExtentStore::KvIsFull() {
  if (!kv_full_) return false;
  kv_full_ = !kv_->HasRoom();
  return kv_full_;
}

void ExtentStore::Enqueue(OpPtr op) {
  Begin();
  op->done = [this, done = std::move(op->done)](Result<ObjectInfo> info) {
    done(std::move(info));
    End();
  };
  const bool early = op->kind == StoreOp::Kind::kWrite && !op->terms.append && IsWholeBlocks(*op) &&
                     !DeferThis(*op);
  op->started = op->early = early;
  const ObjectPtr object = op->object;
  {
    std::lock_guard lock(object->mutex);
    object->queue.push_back(op);
    if (!object->loaded) RequestLoadLocked(object);
  }
  if (early) PrepareImage(op);
  Pump(object);
}

// Starts and executes what is at the head of the queue, as far as it goes.
void ExtentStore::Pump(const ObjectPtr& object) {
  for (;;) {
    OpPtr head;
    bool start = false;
    Status failure;
    {
      std::lock_guard lock(object->mutex);
      if (object->queue.empty()) return;
      head = object->queue.front();
      if (!object->loaded && head->aborted.ok()) return;
      if (!head->started) {
        head->started = start = true;
      } else if (!head->ready) {
        return;
      } else {
        object->queue.pop_front();
        // One that failed already may have been made before.
        if (head->aborted.ok() && (head->failure.ok() || head->HasId())) Execute(head);
        failure = head->aborted.ok() ? head->failure : head->aborted;
      }
    }
    if (start) {
      Start(head);
    } else if (head->settled || !failure.ok()) {
      Unclaim(head);
      DropRefs(*head);
      head->settled ? End() : head->done(failure);
    }
  }
}

void ExtentStore::FailQueue(const ObjectPtr& object, const Status& status) {
  std::lock_guard lock(object->mutex);
  for (const OpPtr& op : object->queue) {
    op->aborted = status;
    if (!op->started) op->started = op->ready = true;
  }
}

void ExtentStore::Ready(const OpPtr& op) {
  {
    std::lock_guard lock(op->object->mutex);
    op->ready = true;
  }
  Pump(op->object);
}

void ExtentStore::Fail(const OpPtr& op, Status status) {
  op->failure = std::move(status);
  Ready(op);
}

void ExtentStore::Start(const OpPtr& op) {
  switch (op->kind) {
    case StoreOp::Kind::kWrite:
      return op->terms.append ? StartAppend(op) : StartWrite(op);
    case StoreOp::Kind::kTruncate:
      return StartTruncate(op);
    case StoreOp::Kind::kDelete:
      return Ready(op);
    case StoreOp::Kind::kPunch:
      return StartPunch(op);
    case StoreOp::Kind::kCopy:
      if (KvIsFull()) return Fail(op, NoSpace());
      return WhenLoaded(op->source, [this, op](const Status& status) {
        if (!status.ok()) return Fail(op, status);
        PlanCopy(op);
      });
    case StoreOp::Kind::kAllocate:
      return StartAllocate(op);
    case StoreOp::Kind::kGiveBack:
      return Ready(op);
  }
}

// At the head of the queue, so that the end stays where it is.
void ExtentStore::StartAppend(const OpPtr& op) {
  {
    std::lock_guard lock(op->object->mutex);
    op->offset = op->object->size;
  }
  if (!Fits(op->offset, op->data.size())) return Fail(op, BeyondObject("append"));
  StartWrite(op);
}

void ExtentStore::StartWrite(const OpPtr& op) {
  const uint64_t begin = op->offset, end = op->offset + op->data.size();
  if (!op->data.empty()) {
    std::lock_guard lock(op->object->mutex);
    const Object& object = *op->object;
    const auto first = static_cast<uint32_t>(begin / kBlockSize);
    const auto last = static_cast<uint32_t>((end - 1) / kBlockSize);
    for (const uint32_t block : {first, last}) {
      const uint64_t block_begin = uint64_t{block} * kBlockSize;
      const uint64_t block_end = block_begin + kBlockSize;
      const bool covered = begin <= block_begin && (end >= block_end || end >= object.size);
      const bool has_bytes = object.RefOf(block).place != 0 || object.overlays.contains(block);
      if (covered || !has_bytes || block_begin >= object.size) continue;
      if (op->edges.empty() || op->edges.back() != block) op->edges.push_back(block);
    }
  }
  ReadEdges(op);
}

// Cutting inside a block: the bytes behind the cut become zeros, so that growing the object again
// shows zeros there. It goes to RocksDB, which keeps room for it on a full device.
void ExtentStore::StartTruncate(const OpPtr& op) {
  {
    std::lock_guard lock(op->object->mutex);
    const Object& object = *op->object;
    const auto block = static_cast<uint32_t>(op->offset / kBlockSize);
    const bool has_bytes = object.RefOf(block).place != 0 || object.overlays.contains(block);
    if (op->offset < object.size && op->offset % kBlockSize != 0 && has_bytes) {
      op->edges.push_back(block);
    }
  }
  ReadEdges(op);
}

void ExtentStore::ReadEdges(const OpPtr& op) {
  if (op->edges.empty()) return PrepareImage(op);
  const uint32_t block = op->edges.back();
  ReadLoaded(
      op->object, uint64_t{block} * kBlockSize, kBlockSize,
      [this, op, block](Result<ObjectData> read) {
        if (!read.ok()) return Fail(op, read.status());
        op->old[block] = std::move(read->bytes);
        op->edges.pop_back();
        ReadEdges(op);
      },
      0);
}

// Builds the whole blocks that the operation leaves behind, with one pass over the bytes.
void ExtentStore::PrepareImage(const OpPtr& op) {
  if (op->kind == StoreOp::Kind::kTruncate) {
    if (op->old.empty()) return Ready(op);
    const auto& [block, bytes] = *op->old.begin();
    op->first_block = block;
    op->image = Buffer::AlignedZeros(kBlockSize);
    const uint64_t keep = std::min<uint64_t>(bytes.size(), op->offset % kBlockSize);
    std::memcpy(op->image.data(), bytes.data(), keep);
    return Ready(op);
  }
  if (KvIsFull()) return Fail(op, NoSpace());
  if (op->data.empty()) return Ready(op);
  const uint64_t begin = op->offset, end = begin + op->data.size();
  const bool defer = DeferThis(*op);
  op->first_block = static_cast<uint32_t>(begin / kBlockSize);
  const auto count = static_cast<uint32_t>((end - 1) / kBlockSize) - op->first_block + 1;
  op->crcs.resize(count);
  if (!IsWholeBlocks(*op) && !IsIntact(*op, Crc32c(op->data.data(), op->data.size()))) {
    return Fail(op, DamagedOnItsWay());
  }
  if (IsWholeBlocks(*op) && op->data.IsAligned() && !defer) {
    op->image = op->data;
    for (uint32_t i = 0; i < count; ++i) {
      op->crcs[i] = Crc32c(op->image.data() + size_t{i} * kBlockSize, kBlockSize);
    }
    if (!IsIntact(*op, Joined(op->crcs))) return Fail(op, DamagedOnItsWay());
    return WriteImage(op);
  }
  op->image = Buffer::Aligned(size_t{count} * kBlockSize);
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t* block = op->image.data() + size_t{i} * kBlockSize;
    const uint64_t start = uint64_t{op->first_block + i} * kBlockSize;
    const uint64_t from = std::max(begin, start), to = std::min(end, start + kBlockSize);
    if (to - from == kBlockSize) {
      op->crcs[i] = CopyCrc32c(block, op->data.data() + (from - begin), kBlockSize);
      continue;
    }
    std::memset(block, 0, kBlockSize);
    if (const auto old = op->old.find(op->first_block + i); old != op->old.end()) {
      std::memcpy(block, old->second.data(), old->second.size());
    }
    std::memcpy(block + (from - start), op->data.data() + (from - begin), to - from);
    op->crcs[i] = Crc32c(block, kBlockSize);
  }
  if (IsWholeBlocks(*op) && !IsIntact(*op, Joined(op->crcs))) return Fail(op, DamagedOnItsWay());
  if (defer) return Ready(op);
  WriteImage(op);
}

void ExtentStore::WriteImage(const OpPtr& op) {
  op->places = allocator_.Allocate(static_cast<uint32_t>(op->image.size() / kBlockSize));
  if (op->places.empty()) return WriteWhenFull(op);
  WritePlaces(op);
}

void ExtentStore::WritePlaces(const OpPtr& op) {
  auto written = [this, op](Status status) {
    if (!status.ok()) return Fail(op, std::move(status));
    op->data_stamp = device_.completed_writes();
    if (op->landed) op->patience = op->landed();
    Ready(op);
  };
  if (op->places.size() == 1 && op->image.size() <= WriteGatherer::kSmallMax) {
    return writes_.Write(uint64_t{op->places[0].place} * kBlockSize, op->image, written);
  }
  std::vector<PiecewiseIo::Range> ranges;
  ranges.reserve(op->places.size());
  size_t at = 0;
  for (const Extent& extent : op->places) {
    const size_t length = size_t{extent.count} * kBlockSize;
    ranges.push_back({uint64_t{extent.place} * kBlockSize, op->image.Slice(at, length)});
    at += length;
  }
  PiecewiseIo::Run(device_, PiecewiseIo::Kind::kWrite, std::move(ranges), piece_bytes_, written);
}

}  // namespace weir::osd
