// LockSet: the advisory locks on one file, of one family: byte ranges (POSIX and OFD locks, which
// differ in who the owner is only) or the whole file (flock). An owner has one state per byte: what
// he sets replaces what he had there, and neighbours of the same kind become one.
//
// Ranges:  first and last byte, both included; the last byte of all is kLastByte.
// Threads: not thread-safe. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace weir {

struct LockOwner {
  uint64_t session = 0;  // of the mount
  uint64_t id = 0;       // a process or an open file of it, as its kernel names them
  auto operator<=>(const LockOwner&) const = default;
};

struct FileLock {
  static constexpr uint64_t kLastByte = INT64_MAX;

  LockOwner owner;
  uint64_t first = 0;
  uint64_t last = kLastByte;
  bool write = false;
  uint32_t pid = 0;  // of who set it, for people
  bool operator==(const FileLock&) const = default;
};

class LockSet {
 public:
  // One that must go before `wanted` can be set: the lowest.
  [[nodiscard]] std::optional<FileLock> Conflict(const FileLock& wanted) const;
  // All owners of such.
  [[nodiscard]] std::vector<LockOwner> Blockers(const FileLock& wanted) const;
  // Whatever others have there: ask Conflict first.
  void Set(const FileLock& lock);
  void Clear(const LockOwner& owner, uint64_t first, uint64_t last);
  // False: he had none.
  bool Drop(const LockOwner& owner) { return owners_.erase(owner) > 0; }
  bool DropSession(uint64_t session);

  [[nodiscard]] bool Holds(const LockOwner& owner) const { return owners_.contains(owner); }
  // What of it its owner has not: who may write there may read as well.
  [[nodiscard]] std::vector<FileLock> Missing(const FileLock& lock) const;
  // What of it lies where its owner has none, of whatever kind.
  [[nodiscard]] std::vector<FileLock> Unlocked(const FileLock& lock) const;
  [[nodiscard]] std::vector<FileLock> All() const;
  [[nodiscard]] bool empty() const { return owners_.empty(); }

 private:
  using Ranges = std::map<uint64_t, FileLock>;  // by first byte; never overlapping
  static void Cut(Ranges* ranges, uint64_t first, uint64_t last);
  [[nodiscard]] std::vector<FileLock> Without(const FileLock& lock, bool whatever_kind) const;

  std::map<LockOwner, Ranges> owners_;
};

}  // namespace weir
