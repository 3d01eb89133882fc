// Reads: overlays from memory, holes as zeros, the rest from the device, every block verified.
//
// No lock is held while the device works, so a block may be moved or rewritten in between, and its
// old place may be given away. Then its checksum does not match, the object has changed, and the
// read is planned anew; a mismatch with nothing changed is corruption.
#include <algorithm>

#include "common/base/crc32c.h"
#include "osd/store/extent_store.h"
#include "osd/store/piecewise_io.h"

namespace weir::osd {
namespace {

constexpr int kAttemptsMax = 16;

const uint32_t kCrcOfHole = Crc32c(Buffer::AlignedZeros(kBlockSize).data(), kBlockSize);

}  // namespace

struct ExtentStore::ReadOp {
  ObjectPtr object;
  uint64_t offset, length;
  ReadDone done;
  int attempt;
  uint32_t first_block;
  Buffer out;                  // whole blocks
  bool summed = true;          // refs know the checksums of all blocks
  std::vector<BlockRef> refs;  // place 0: not read from the device

  // What the device must fill in, one range per run of blocks that lie together. The rest is zeros
  // from here on.
  std::vector<PiecewiseIo::Range> Plan();
  [[nodiscard]] ObjectData Data() const;
};

std::vector<PiecewiseIo::Range> ExtentStore::ReadOp::Plan() {
  std::vector<PiecewiseIo::Range> ranges;
  const auto count = static_cast<uint32_t>(refs.size());
  for (uint32_t i = 0; i < count;) {
    const uint32_t place = refs[i].place;
    uint32_t run = 1;
    if (place == 0) {
      std::memset(out.data() + size_t{i} * kBlockSize, 0, kBlockSize);
    } else {
      while (i + run < count && refs[i + run].place == place + run) ++run;
      ranges.push_back({uint64_t{place} * kBlockSize,
                        out.Slice(size_t{i} * kBlockSize, size_t{run} * kBlockSize)});
    }
    i += run;
  }
  return ranges;
}

// As much of it as was asked for. Whole blocks have been summed already.
ObjectData ExtentStore::ReadOp::Data() const {
  const uint64_t skip = offset - uint64_t{first_block} * kBlockSize;
  ObjectData data{out.Slice(skip, length), std::nullopt};
  if (!summed || length != out.size()) return data;
  Crc32cOfBlocks all;
  for (const BlockRef& ref : refs) all.Add(ref.place == 0 ? kCrcOfHole : ref.crc);
  data.crc = all.joined();
  return data;
}

void ExtentStore::Read(ObjectId id, uint64_t offset, uint64_t length, ReadDone done) {
  Begin();
  const ObjectPtr object = Lookup(id);
  auto finish = [this, done = std::move(done)](Result<ObjectData> result) {
    done(std::move(result));
    End();
  };
  {
    std::lock_guard lock(object->mutex);
    if (!object->loaded) {
      object->waiting.push_back(
          [this, object, offset, length, finish = std::move(finish)](const Status& status) {
            if (!status.ok()) return finish(status);
            ReadLoaded(object, offset, length, finish, 0);
          });
      RequestLoadLocked(object);
      return;
    }
  }
  ReadLoaded(object, offset, length, std::move(finish), 0);
}

void ExtentStore::ReadLoaded(const ObjectPtr& object, uint64_t offset, uint64_t length,
                             ReadDone done, int attempt) {
  auto op = std::make_shared<ReadOp>();
  std::vector<std::pair<uint32_t, Buffer>> from_memory;  // index in refs
  {
    std::lock_guard lock(object->mutex);
    length = offset >= object->size ? 0 : std::min(length, object->size - offset);
    if (length > 0) {
      op->first_block = static_cast<uint32_t>(offset / kBlockSize);
      const auto last = static_cast<uint32_t>((offset + length - 1) / kBlockSize);
      op->refs.resize(last - op->first_block + 1);
      for (uint32_t i = 0; i < op->refs.size(); ++i) {
        op->refs[i] = object->RefOf(op->first_block + i);
      }
      for (auto it = object->overlays.lower_bound(op->first_block);
           it != object->overlays.end() && it->first <= last; ++it) {
        op->refs[it->first - op->first_block] = {};
        op->summed = false;
        from_memory.emplace_back(it->first - op->first_block, it->second.bytes);
      }
    }
  }
  if (length == 0) return done(ObjectData());
  op->object = object;
  op->offset = offset;
  op->length = length;
  op->done = std::move(done);
  op->attempt = attempt;
  op->out = transfer_buffers_.Get(op->refs.size() * kBlockSize);
  std::vector<PiecewiseIo::Range> ranges = op->Plan();
  for (const auto& [i, bytes] : from_memory) {
    std::memcpy(op->out.data() + size_t{i} * kBlockSize, bytes.data(), kBlockSize);
  }
  PiecewiseIo::Run(device_, PiecewiseIo::Kind::kRead, std::move(ranges), piece_bytes_,
                   [this, op](Status status) {
                     if (!status.ok()) return op->done(std::move(status));
                     VerifyRead(op);
                   });
}

void ExtentStore::VerifyRead(const std::shared_ptr<ReadOp>& op) {
  for (uint32_t i = 0; i < op->refs.size(); ++i) {
    if (op->refs[i].place == 0) continue;
    const uint8_t* block = op->out.data() + size_t{i} * kBlockSize;
    if (Crc32c(block, kBlockSize) != op->refs[i].crc) return ReadFailed(*op, i);
  }
  op->done(op->Data());
}

void ExtentStore::ReadFailed(ReadOp& op, uint32_t i) {
  const uint32_t block = op.first_block + i;
  bool changed;
  {
    std::lock_guard lock(op.object->mutex);
    changed = op.object->overlays.contains(block) || op.object->RefOf(block) != op.refs[i];
  }
  if (changed && op.attempt < kAttemptsMax) {
    return ReadLoaded(op.object, op.offset, op.length, std::move(op.done), op.attempt + 1);
  }
  ++checksum_errors_;
  op.done(Status(ErrorCode::kCorrupt,
                 device_.name() + ": checksum mismatch in block " + std::to_string(block) +
                     " of object " + std::to_string(op.object->id.inode.value) + "." +
                     std::to_string(op.object->id.index) + " at device offset " +
                     std::to_string(uint64_t{op.refs[i].place} * kBlockSize)));
}

}  // namespace weir::osd
