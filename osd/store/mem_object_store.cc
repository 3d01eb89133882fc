#include "osd/store/mem_object_store.h"

#include <algorithm>

#include "common/base/crc32c.h"

namespace weir::osd {

void MemObjectStore::Read(ObjectId id, uint64_t offset, uint64_t length, ReadDone done) {
  ObjectData result;
  {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(id);
    if (it != objects_.end() && offset < it->second.bytes.size()) {
      const auto& bytes = it->second.bytes;
      length = std::min<uint64_t>(length, bytes.size() - offset);
      result.bytes = Buffer::Aligned(length);
      std::memcpy(result.bytes.data(), bytes.data() + offset, length);
    }
  }
  done(std::move(result));
}

void MemObjectStore::Write(ObjectId id, uint64_t offset, Buffer data, const WriteHints& hints,
                           WriteDone done) {
  if (hints.crc.has_value() && *hints.crc != Crc32c(data.data(), data.size())) {
    return done(Status(ErrorCode::kBadMessage, "payload was damaged on its way"));
  }
  if (offset > kMaxObjectSize || data.size() > kMaxObjectSize - offset) {
    return done(Status(ErrorCode::kInvalid, "write beyond the largest object"));
  }
  ObjectInfo info;
  {
    std::lock_guard lock(mutex_);
    Object& object = objects_[id];
    if (object.bytes.size() < offset + data.size()) object.bytes.resize(offset + data.size());
    if (!data.empty()) std::memcpy(object.bytes.data() + offset, data.data(), data.size());
    object.version = next_version_++;
    info = {object.bytes.size(), {0, object.version}};
  }
  done(info);
}

void MemObjectStore::Truncate(ObjectId id, uint64_t size, WriteDone done) {
  if (size > kMaxObjectSize) {
    return done(Status(ErrorCode::kInvalid, "truncate beyond the largest object"));
  }
  ObjectInfo info;
  {
    std::lock_guard lock(mutex_);
    Object& object = objects_[id];
    object.bytes.resize(size);
    object.version = next_version_++;
    info = {size, {0, object.version}};
  }
  done(info);
}

void MemObjectStore::Delete(ObjectId id, Done done) {
  {
    std::lock_guard lock(mutex_);
    objects_.erase(id);
  }
  done({});
}

void MemObjectStore::DeleteInode(InodeId inode, uint64_t first_index, DeletedDone done) {
  DeleteSome(inode, first_index, SIZE_MAX, std::move(done));
}

void MemObjectStore::DeleteSome(InodeId inode, uint64_t first_index, size_t most,
                                DeletedDone done) {
  uint64_t next = 0;
  {
    std::lock_guard lock(mutex_);
    auto it = objects_.lower_bound({inode, first_index});
    while (it != objects_.end() && it->first.inode == inode && most-- > 0) it = objects_.erase(it);
    if (it != objects_.end() && it->first.inode == inode) next = it->first.index;
  }
  done(DeletedObjects{next, 0});
}

void MemObjectStore::Punch(ObjectId id, uint64_t offset, uint64_t length, WriteDone done) {
  ObjectInfo info;
  {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(id);
    if (it != objects_.end()) {
      auto& bytes = it->second.bytes;
      const uint64_t end = std::min<uint64_t>(offset + length, bytes.size());
      for (uint64_t i = offset; i < end; ++i) bytes[i] = 0;
      it->second.version = next_version_++;
      info = {bytes.size(), {0, it->second.version}};
    }
  }
  done(info);
}

void MemObjectStore::Allocate(ObjectId id, uint64_t offset, uint64_t length, bool zeros,
                              WriteDone done) {
  {
    std::lock_guard lock(mutex_);
    objects_[id].version = next_version_++;
  }
  Punch(id, offset, zeros ? length : 0, std::move(done));
}

void MemObjectStore::GiveBack(ObjectId id, uint64_t offset, uint64_t, WriteDone done) {
  Punch(id, offset, 0, std::move(done));
}

void MemObjectStore::Copy(const CopySource& from, ObjectId to, uint64_t offset, uint64_t length,
                          WriteDone done) {
  Buffer data = Buffer::AlignedZeros(length);
  {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(from.id);
    const uint64_t size = it == objects_.end() ? 0 : it->second.bytes.size();
    if (from.offset < size) {
      std::memcpy(data.data(), it->second.bytes.data() + from.offset,
                  std::min(length, size - from.offset));
    }
  }
  Write(to, offset, std::move(data), {}, std::move(done));
}

void MemObjectStore::Extents(ObjectId id, uint64_t offset, uint64_t length, ExtentsDone done) {
  std::vector<ByteRange> ranges;
  {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(id);
    const uint64_t size = it == objects_.end() ? 0 : it->second.bytes.size();
    const uint64_t end = std::min(offset + length, size);
    for (uint64_t at = offset; at < end;) {
      const uint64_t block = at / kBlockSize * kBlockSize;
      const auto begin = it->second.bytes.begin();
      const auto stop = begin + static_cast<ptrdiff_t>(std::min(block + kBlockSize, size));
      const bool data = std::any_of(begin + static_cast<ptrdiff_t>(block), stop,
                                    [](uint8_t byte) { return byte != 0; });
      const uint64_t next = std::min(end, block + kBlockSize);
      if (data && !ranges.empty() && ranges.back().offset + ranges.back().length == at) {
        ranges.back().length += next - at;
      } else if (data) {
        ranges.push_back({at, next - at});
      }
      at = next;
    }
  }
  done(std::move(ranges));
}

void MemObjectStore::NextIndex(ObjectId id, NextDone done) {
  uint64_t next = UINT64_MAX;
  {
    std::lock_guard lock(mutex_);
    const auto it = objects_.upper_bound(id);
    if (it != objects_.end() && it->first.inode == id.inode) next = it->first.index;
  }
  done(next);
}

void MemObjectStore::Stat(ObjectId id, InfoDone done) {
  ObjectInfo info;
  {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(id);
    if (it != objects_.end()) info = {it->second.bytes.size(), {0, it->second.version}};
  }
  done(info);
}

Result<std::optional<ObjectId>> MemObjectStore::NextObject(ObjectId from) {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.lower_bound(from);
  if (it == objects_.end()) return std::optional<ObjectId>();
  return std::optional<ObjectId>(it->first);
}

uint64_t MemObjectStore::LbaHint(ObjectId id, uint64_t offset) {
  return (MixHash(id.inode.value, id.index) & ~(kMaxObjectSize - 1)) + offset;
}

StoreStats MemObjectStore::Stats() const {
  std::lock_guard lock(mutex_);
  StoreStats stats;
  stats.capacity_bytes = uint64_t{1} << 40;
  stats.objects = objects_.size();
  for (const auto& [id, object] : objects_) stats.used_bytes += object.bytes.size();
  return stats;
}

}  // namespace weir::osd
