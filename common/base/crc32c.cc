#include "common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace weir {
namespace {

constexpr uint32_t kReflected = 0x82f63b78;  // the polynomial, x^31 in the lowest bit

// A checksum is a polynomial over GF(2), and each byte behind it multiplies it by x^8. Of a
// product with a fixed polynomial each byte of the other factor gives its part by itself.
using Parts = std::array<std::array<uint32_t, 256>, 4>;

constexpr uint32_t TimesX(uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kReflected : 0);
}

constexpr uint32_t Times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit, b = TimesX(b)) {
    if ((a >> bit & 1) != 0) product ^= b;
  }
  return product;
}

Parts PartsOfBlock() {
  uint32_t power = uint32_t{1} << 31 >> 1;  // x
  for (size_t bits = 1; bits < 8 * Crc32cOfBlocks::kBlock; bits *= 2) power = Times(power, power);
  Parts parts{};
  for (size_t at = 0; at < parts.size(); ++at) {
    for (uint32_t byte = 0; byte < 256; ++byte) parts[at][byte] = Times(byte << 8 * at, power);
  }
  return parts;
}

}  // namespace

uint32_t Crc32cOfBlocks::PassBlock(uint32_t crc) {
  static const Parts kParts = PartsOfBlock();
  return kParts[0][crc & 0xff] ^ kParts[1][crc >> 8 & 0xff] ^ kParts[2][crc >> 16 & 0xff] ^
         kParts[3][crc >> 24];
}

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
