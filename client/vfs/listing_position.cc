#include "client/vfs/listing_position.h"

#include <bit>

namespace weir::client {
namespace {

// A number below 2^30 is `at` alone, one with bit 30 or bit 62 as its highest has fields:
// the float of `end`, then `at`.
constexpr unsigned kShortFlag = 30, kShortAt = 19;
constexpr unsigned kLongFlag = 62, kLongAt = 48;

// Floats: those below 2^7 are exact; else an exponent and, behind a leading one that is not
// written, seven bits.
constexpr unsigned kMantissa = 7;
constexpr uint64_t kLeadingOne = uint64_t{1} << kMantissa;

constexpr uint64_t Below(uint64_t number, unsigned bits) {
  return number & ((uint64_t{1} << bits) - 1);
}

uint64_t ToFloat(uint64_t value) {
  if (value < kLeadingOne) return value;
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kMantissa;
  const uint64_t up = (value + (uint64_t{1} << shift) - 1) >> shift;  // a carry moves the exponent
  return (uint64_t{shift} << kMantissa) + up;
}

uint64_t FromFloat(uint64_t code) {
  const uint64_t exponent = code >> kMantissa;
  if (exponent == 0) return code;
  return (kLeadingOne + Below(code, kMantissa)) << (exponent - 1);
}

}  // namespace

uint64_t EncodePosition(const ListingPosition& position) {
  const uint64_t end = ToFloat(position.end);
  const bool is_short = FromFloat(end) < uint64_t{1} << kShortAt;
  const unsigned flag = is_short ? kShortFlag : kLongFlag, width = is_short ? kShortAt : kLongAt;
  return uint64_t{1} << flag | end << width | position.at;
}

ListingPosition DecodePosition(uint64_t number) {
  const auto split = [number](unsigned flag, unsigned width) {
    return ListingPosition{Below(number, width), FromFloat(Below(number, flag) >> width)};
  };
  if (number >> kLongFlag == 1) return split(kLongFlag, kLongAt);
  if (number >> kShortFlag == 1) return split(kShortFlag, kShortAt);
  return {number, 0};
}

}  // namespace weir::client
