// Buffer: a slice of reference-counted bytes, passed from the network to the device uncopied.
//
// Copies of a Buffer share the bytes. Whoever fills a buffer does so before sharing it; after that
// the bytes are read-only by convention, which is what makes it safe to hand across threads.
// Units: bytes. Threads: distinct Buffer values may be used from different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/check.h"

namespace weir {

inline constexpr size_t kBlockSize = 4096;  // alignment and checksum unit of the store

class Buffer {
 public:
  Buffer() = default;
  // Bytes owned by something else, kept alive through `owner`.
  Buffer(std::shared_ptr<void> owner, uint8_t* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  // `size` uninitialised bytes whose address is a multiple of kBlockSize; the allocation is rounded
  // up to whole blocks so that O_DIRECT may fill the tail.
  static Buffer Aligned(size_t size);
  static Buffer AlignedZeros(size_t size);
  static Buffer CopyOf(std::span<const uint8_t> bytes);
  // Bytes that stay their owner's, and are there for as long as he says.
  static Buffer Borrowed(std::span<const uint8_t> bytes) {
    return {nullptr, const_cast<uint8_t*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] bool borrowed() const { return owner_ == nullptr; }
  // The same bytes, for as long as anybody wants them.
  [[nodiscard]] Buffer Kept() const { return borrowed() ? CopyOf(span()) : *this; }
  static Buffer CopyOf(std::string_view text) {
    return CopyOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const uint8_t> span() const { return {data_, size_}; }
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(data_), size_};
  }
  [[nodiscard]] bool IsAligned() const {
    return reinterpret_cast<uintptr_t>(data_) % kBlockSize == 0;
  }
  // A part of it, sharing the bytes. Requires: offset + length <= size().
  [[nodiscard]] Buffer Slice(size_t offset, size_t length) const {
    WEIR_CHECK(offset <= size_ && length <= size_ - offset, "slice outside the buffer");
    return {owner_, data_ + offset, length};
  }
  // Who keeps the bytes alive; for handing them to C libraries.
  [[nodiscard]] const std::shared_ptr<void>& owner() const { return owner_; }

 private:
  std::shared_ptr<void> owner_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace weir
