// Identifiers that a mix-up would compile without: each is a type of its own.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

namespace weir {

template <typename Tag, typename Rep>
struct StrongId {
  Rep value = 0;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << +id.value; }
};

using InodeId = StrongId<struct InodeTag, uint64_t>;
using OsdId = StrongId<struct OsdTag, uint32_t>;
using ClassId = StrongId<struct ClassTag, uint32_t>;
using PoolId = StrongId<struct PoolTag, uint32_t>;
using Epoch = StrongId<struct EpochTag, uint64_t>;

inline constexpr InodeId kRootInode{1};
inline constexpr ClassId kBestEffort{0};
// Classes of WeirFS's own background work; they exist from the start and cannot be removed.
inline constexpr ClassId kSystemCompaction{1};
inline constexpr ClassId kSystemPurge{2};
inline constexpr ClassId kSystemRecovery{3};
inline constexpr ClassId kSystemScrub{4};
inline constexpr ClassId kFirstUserClass{16};

// Up to `object_size` bytes of one file: the unit of placement and versioning.
struct ObjectId {
  InodeId inode;
  uint64_t index = 0;
  friend constexpr auto operator<=>(const ObjectId&, const ObjectId&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const ObjectId& id) {
  return out << id.inode << "." << id.index;
}

// Finalizer of splitmix64: a well mixed 64-bit hash of an integer, the same on every machine.
constexpr uint64_t MixHash(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
constexpr uint64_t MixHash(uint64_t a, uint64_t b) {
  return MixHash(MixHash(a) ^ b);
}

}  // namespace weir

template <typename Tag, typename Rep>
struct std::hash<weir::StrongId<Tag, Rep>> {
  size_t operator()(weir::StrongId<Tag, Rep> id) const noexcept { return weir::MixHash(id.value); }
};
template <>
struct std::hash<weir::ObjectId> {
  size_t operator()(const weir::ObjectId& id) const noexcept {
    return weir::MixHash(id.inode.value, id.index);
  }
};
