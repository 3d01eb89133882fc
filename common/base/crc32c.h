// CRC-32C (Castagnoli), the checksum of every frame and block. Matches RFC 3720: "123456789" ->
// 0xe3069283.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

// The checksum of `size` bytes, continuing from `previous` (0 to start).
uint32_t Crc32c(const void* data, size_t size, uint32_t previous = 0);

// Copies and checksums cache-sized pieces in one pass over memory.
uint32_t CopyCrc32c(void* to, const void* from, size_t size, uint32_t previous = 0);

// The checksum of blocks of 4 KiB, one behind the other, of which only the checksums are
// known: some nanoseconds for each instead of a pass over its bytes. Of no blocks it is 0, as of no
// bytes.
class Crc32cOfBlocks {
 public:
  static constexpr size_t kBlock = 4096;

  void Add(uint32_t crc) { joined_ = PassBlock(joined_) ^ crc; }
  [[nodiscard]] uint32_t joined() const { return joined_; }

 private:
  static uint32_t PassBlock(uint32_t crc);
  uint32_t joined_ = 0;
};

}  // namespace weir
