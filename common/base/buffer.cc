#include "common/base/buffer.h"

#include <cstdlib>
#include <new>

namespace weir {

Buffer Buffer::Aligned(size_t size) {
  const size_t rounded = (size + kBlockSize - 1) / kBlockSize * kBlockSize;
  void* memory = std::aligned_alloc(kBlockSize, rounded == 0 ? kBlockSize : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return {std::shared_ptr<void>(memory, std::free), static_cast<uint8_t*>(memory), size};
}

Buffer Buffer::AlignedZeros(size_t size) {
  Buffer buffer = Aligned(size);
  std::memset(buffer.data(), 0, size);
  return buffer;
}

Buffer Buffer::CopyOf(std::span<const uint8_t> bytes) {
  auto memory = std::make_shared_for_overwrite<uint8_t[]>(bytes.size());
  uint8_t* data = memory.get();
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return {std::shared_ptr<void>(std::move(memory), data), data, bytes.size()};
}

}  // namespace weir
