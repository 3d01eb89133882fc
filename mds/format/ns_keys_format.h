// Keys of the namespace store: one letter for the table, then fixed-width big-endian numbers, so
// that byte order is numeric order, then raw names. The grammar with worked bytes:
// NAMESPACE_FORMAT.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace weir::mds {

enum class Table : char {
  kAnswer = 'a',      // sub-session, request id    -> AnswerRecord
  kBackref = 'b',     // inode, parent, name        -> "" : a link besides the primary one
  kCookie = 'c',      // directory, cookie          -> CookieRecord
  kDentry = 'd',      // directory, name            -> DentryRecord
  kHeld = 'h',        // class                      -> HeldRecord
  kInode = 'i',       // inode                      -> InodeRecord
  kKeeper = 'k',      // session                    -> "" : repeats what it was told, or kGivenUp
  kLockHolder = 'l',  // session                    -> "" : may hold advisory locks
  kMeta = 'm',        // word                       -> one of a kind
  kOrphan = 'o',      // inode                      -> "" : no link left, still open somewhere
  kPurge = 'p',       // inode                      -> PurgeRecord
  kTruncate = 't',    // inode                      -> TruncateRecord
  kUntold = 'u',      // directory                  -> "" : its parent does not count all of it
  kLostWriter = 'v',  // number of a writer         -> "" : nobody knows what it left behind files
  kWriter = 'w',      // session                    -> WriterRecord: may have files open for writing
  kXattr = 'x',       // inode, name                -> raw value
};

inline void AppendBigEndian(std::string* out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

// Requires: at least offset + 8 bytes.
inline uint64_t ReadBigEndian(std::string_view key, size_t offset) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(key[offset + i]);
  return value;
}

inline std::string MakeKey(Table table) {
  return std::string(1, static_cast<char>(table));
}
inline std::string MakeKey(Table table, uint64_t a) {
  std::string key = MakeKey(table);
  AppendBigEndian(&key, a);
  return key;
}
inline std::string MakeKey(Table table, uint64_t a, uint64_t b) {
  std::string key = MakeKey(table, a);
  AppendBigEndian(&key, b);
  return key;
}
inline std::string MakeKey(Table table, uint64_t a, std::string_view name) {
  std::string key = MakeKey(table, a);
  key.append(name);
  return key;
}
inline std::string MakeKey(Table table, uint64_t a, uint64_t b, std::string_view name) {
  std::string key = MakeKey(table, a, b);
  key.append(name);
  return key;
}

// The first key behind every key that begins with `prefix`. Requires: no table letter is 0xff.
inline std::string PrefixEnd(std::string prefix) {
  while (static_cast<uint8_t>(prefix.back()) == 0xff) prefix.pop_back();
  ++prefix.back();
  return prefix;
}

inline constexpr size_t kFirstNumber = 1;   // offset of the first number of a key
inline constexpr size_t kSecondNumber = 9;  // of the second
inline constexpr size_t kNameAfterTwo = 17;

inline const char* const kStateKey = "mstate";
// Value in table kKeeper.
inline constexpr std::string_view kGivenUp = "lost";
inline const char* const kClusterKey = "mcluster";

}  // namespace weir::mds
