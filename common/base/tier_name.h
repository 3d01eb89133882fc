// TierName: which of an OSD's disks, by the name that --tier-disk gives it ("ssd", "hdd").
//
// 1 to 8 of a-z, 0-9 and '-', so that a name fits into a word and travels with every request at no
// price. The empty name stands for the first tier, and for the only disk of an OSD without tiers.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace weir {

class TierName {
 public:
  static constexpr size_t kLongest = 8;

  TierName() = default;
  // kInvalid says what a name is made of; the empty one is refused too.
  static Result<TierName> Parse(std::string_view text);
  // Of a message: what is no name is the empty one.
  static TierName FromWire(std::string_view text);

  [[nodiscard]] bool empty() const { return packed_ == 0; }
  [[nodiscard]] std::string ToString() const;
  friend auto operator<=>(const TierName&, const TierName&) = default;

 private:
  uint64_t packed_ = 0;  // first letter lowest
};

}  // namespace weir
