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

}  // namespace weir
