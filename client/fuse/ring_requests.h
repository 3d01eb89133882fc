// RingRequests: which entry of a ring a request came in, by the kernel's number, until it is
// answered; by whatever thread. Pure.
//
// Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace weir::client {

class RingEntry;

class RingRequests {
 public:
  void Add(uint64_t number, RingEntry* entry);
  // The entry, now the caller's; null: the request came by /dev/fuse, or was answered.
  RingEntry* Take(uint64_t number);

 private:
  // Numbers are even and follow each other.
  static constexpr size_t kShards = 16;
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, RingEntry*> entries;
  };
  Shard& ShardOf(uint64_t number) { return shards_[number / 2 % kShards]; }

  std::array<Shard, kShards> shards_;
};

// How many entries a queue of the kernel has. Who finds none free waits in the kernel, where no
// class counts: and for ever, if those that have one wait for what he would do, as locks may. So
// there are always some more.
class RingDepth {
 public:
  struct Limits {
    size_t first = 128;
    size_t most = 4096;
  };
  // Where a depth of one takes `bytes` on all queues together; first is 0: too few fit.
  static Limits LimitsOf(uint64_t bytes_max, uint64_t bytes);
  explicit RingDepth(Limits limits) : limits_(limits) {}

  // A request has come in one; how many entries are to be added now.
  [[nodiscard]] size_t Take();
  void Return() { --taken_; }
  // At the start, and what Take has asked for. The kernel may refuse them (Lose).
  size_t Begin() { return total_ = limits_.first; }
  void Lose() { --total_; }
  [[nodiscard]] size_t taken() const { return taken_; }
  [[nodiscard]] size_t total() const { return total_; }

 private:
  const Limits limits_;
  size_t total_ = 0, taken_ = 0;
};

}  // namespace weir::client
