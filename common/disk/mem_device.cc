#include "common/disk/mem_device.h"

#include <algorithm>

namespace weir {

MemDevice::MemDevice(uint64_t size, std::string name, bool rotational)
    : size_(size),
      name_(std::move(name)),
      rotational_(rotational),
      chunks_((size + kChunk - 1) / kChunk) {}

Status MemDevice::Grow(uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (size <= size_) return {};
  chunks_.resize((size + kChunk - 1) / kChunk);
  size_ = size;
  return {};
}

std::unique_ptr<MemDevice> MemDevice::Clone() const {
  auto copy = std::make_unique<MemDevice>(size_, name_, rotational_);
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i] == nullptr) continue;
    copy->chunks_[i] = std::make_unique_for_overwrite<uint8_t[]>(kChunk);
    std::memcpy(copy->chunks_[i].get(), chunks_[i].get(), kChunk);
  }
  return copy;
}

void MemDevice::DoRead(uint64_t offset, Buffer buffer, Done done) {
  {
    std::lock_guard lock(mutex_);
    for (size_t moved = 0; moved < buffer.size();) {
      const uint64_t at = offset + moved;
      const size_t piece = std::min(kChunk - at % kChunk, buffer.size() - moved);
      const auto& chunk = chunks_[at / kChunk];
      if (chunk == nullptr) {
        std::memset(buffer.data() + moved, 0, piece);
      } else {
        std::memcpy(buffer.data() + moved, chunk.get() + at % kChunk, piece);
      }
      moved += piece;
    }
  }
  done({});
}

void MemDevice::DoWrite(uint64_t offset, Buffer buffer, Done done) {
  {
    std::lock_guard lock(mutex_);
    for (size_t moved = 0; moved < buffer.size();) {
      const uint64_t at = offset + moved;
      const size_t piece = std::min(kChunk - at % kChunk, buffer.size() - moved);
      auto& chunk = chunks_[at / kChunk];
      if (chunk == nullptr) chunk = std::make_unique<uint8_t[]>(kChunk);
      std::memcpy(chunk.get() + at % kChunk, buffer.data() + moved, piece);
      moved += piece;
    }
  }
  done({});
}

Status MemDevice::DoDiscard(uint64_t offset, uint64_t length) {
  std::lock_guard lock(mutex_);
  for (uint64_t at = (offset + kChunk - 1) / kChunk; at < (offset + length) / kChunk; ++at) {
    chunks_[at].reset();
  }
  return {};
}

}  // namespace weir
