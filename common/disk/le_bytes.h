// Fixed-width little-endian fields, written to and read from byte strings. A Reader that runs past
// the end turns bad and yields zeros, so a decoder checks once, at the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "disk formats are copied as they lie");

template <typename T>
void PutLe(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Big-endian, so that keys sort as numbers.
inline void PutBe32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}
inline void PutBe64(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

class LeReader {
 public:
  explicit LeReader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T Get() {
    T value{};
    const std::string_view raw = Bytes(sizeof(T));
    if (ok_) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  uint32_t GetBe32() {
    uint32_t value = 0;
    for (const char c : Bytes(4)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  uint64_t GetBe64() {
    uint64_t value = 0;
    for (const char c : Bytes(8)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view Bytes(size_t n) {
    if (n > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view result = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return result;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace weir
