#include "client/fuse/ring_requests.h"

#include <algorithm>
#include <utility>

namespace weir::client {

void RingRequests::Add(uint64_t number, RingEntry* entry) {
  Shard& shard = ShardOf(number);
  const std::lock_guard lock(shard.mutex);
  shard.entries[number] = entry;
}

RingEntry* RingRequests::Take(uint64_t number) {
  Shard& shard = ShardOf(number);
  const std::lock_guard lock(shard.mutex);
  const auto it = shard.entries.find(number);
  if (it == shard.entries.end()) return nullptr;
  RingEntry* const entry = it->second;
  shard.entries.erase(it);
  return entry;
}

RingDepth::Limits RingDepth::LimitsOf(uint64_t bytes_max, uint64_t bytes) {
  Limits limits;
  if (bytes_max / bytes < limits.first) return {0, 0};
  limits.most = std::min<size_t>(limits.most, bytes_max / bytes);
  return limits;
}

// A quarter of the first ones is always free, so that what comes while others are made finds one.
size_t RingDepth::Take() {
  ++taken_;
  if (total_ - taken_ >= limits_.first / 4 || total_ >= limits_.most) return 0;
  const size_t more = std::min(limits_.first, limits_.most - total_);
  total_ += more;
  return more;
}

}  // namespace weir::client
