#include "common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

namespace weir {

uint32_t Crc32c(const void* data, size_t size, uint32_t previous) {
  // isa-l takes and returns the register without the final inversion, and an int length.
  uint32_t state = ~previous;
  const auto* bytes = static_cast<const unsigned char*>(data);
  while (size > 0) {
    const size_t piece = std::min<size_t>(size, size_t{1} << 30);
    state = crc32_iscsi(const_cast<unsigned char*>(bytes), static_cast<int>(piece), state);
    bytes += piece;
    size -= piece;
  }
  return ~state;
}

uint32_t CopyCrc32c(void* to, const void* from, size_t size, uint32_t previous) {
  constexpr size_t kPiece = 16384;  // stays in L1 between the copy and the checksum
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  for (size_t done = 0; done < size; done += kPiece) {
    const size_t piece = std::min(kPiece, size - done);
    std::memcpy(out + done, in + done, piece);
    previous = Crc32c(out + done, piece, previous);
  }
  return previous;
}

}  // namespace weir
