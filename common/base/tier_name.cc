#include "common/base/tier_name.h"

namespace weir {

Result<TierName> TierName::Parse(std::string_view text) {
  TierName name;
  bool good = !text.empty() && text.size() <= kLongest;
  for (size_t i = 0; good && i < text.size(); ++i) {
    const char c = text[i];
    good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    name.packed_ |= uint64_t{static_cast<uint8_t>(c)} << (8 * i);
  }
  if (good) return name;
  return {ErrorCode::kInvalid,
          "'" + std::string(text) + "' names no tier: a name has 1 to 8 of a-z 0-9 -"};
}

TierName TierName::FromWire(std::string_view text) {
  const Result<TierName> name = Parse(text);
  return name.ok() ? *name : TierName();
}

std::string TierName::ToString() const {
  std::string text;
  for (uint64_t rest = packed_; rest != 0; rest >>= 8) text += static_cast<char>(rest & 0xff);
  return text;
}

}  // namespace weir
