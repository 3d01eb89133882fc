// FlowTable: a fact about each user of a class, or about each opener. It tells at most
// FlowOrder::kFlowsMax of them apart, with paths of kPathBytesMax together; for one more it drops
// those with the least, half of all at a time. So it takes at most 0.4 MiB: with paths of cgroups
// as kubernetes makes them (200 bytes) some 650 are told apart, with paths of 4 KiB 32.
//
// A Fact says by rank_ns() how much it is about. Cost: O(1) on average. Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/qos/flow_order.h"

namespace weir {

// Who is behind a key. Of a user `opener` says nothing. Copies share the path, from any thread.
struct FlowOwner {
  uint64_t session = 0;  // of the mount
  bool by_cgroup = false;
  uint32_t uid = 0;
  std::shared_ptr<const std::string> path;  // of whom by_cgroup tells apart; null: unknown
  uint64_t opener = 0;

  [[nodiscard]] std::string_view cgroup() const {
    return path == nullptr ? std::string_view() : *path;
  }
};

template <typename Fact>
class FlowTable {
 public:
  static constexpr size_t kPathBytesMax = 128 << 10;

  struct Entry {
    FlowOwner owner;
    Fact fact;
  };
  struct KeyHash {
    size_t operator()(const FlowKey& key) const { return MixHash(key.user, key.opener); }
  };
  using Entries = std::unordered_map<FlowKey, Entry, KeyHash>;

  // `owner()` is called only for whom the table does not know; it then begins with `fact`.
  template <typename OwnerOfKey>
  Fact& Find(FlowKey key, const OwnerOfKey& owner, const Fact& fact = {}) {
    if (Fact* const known = Known(key)) return *known;
    FlowOwner who = owner();
    const size_t path = who.cgroup().size();
    while (!entries_.empty() &&
           (entries_.size() >= FlowOrder::kFlowsMax || path_bytes_ + path > kPathBytesMax)) {
      DropLesser();
    }
    path_bytes_ += path;
    return entries_.emplace(key, Entry{std::move(who), fact}).first->second.fact;
  }
  // Null: the table does not know it, or not any more.
  [[nodiscard]] Fact* Known(FlowKey key) {
    const auto known = entries_.find(key);
    return known == entries_.end() ? nullptr : &known->second.fact;
  }
  [[nodiscard]] const Entries& entries() const { return entries_; }

 private:
  // Half of all, rounded up.
  void DropLesser() {
    std::vector<double> ranks;
    ranks.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) ranks.push_back(entry.fact.rank_ns());
    const auto count = static_cast<ptrdiff_t>((ranks.size() + 1) / 2);
    const auto last = ranks.begin() + (count - 1);
    std::nth_element(ranks.begin(), last, ranks.end());
    const double most = *last;
    // Of those with just that much not all have to go.
    ptrdiff_t equal =
        count - std::count_if(ranks.begin(), last, [most](double rank) { return rank < most; });
    std::erase_if(entries_, [&](const auto& place) {
      const double rank = place.second.fact.rank_ns();
      if (rank > most || (rank == most && equal-- <= 0)) return false;
      path_bytes_ -= place.second.owner.cgroup().size();
      return true;
    });
  }

  Entries entries_;
  size_t path_bytes_ = 0;
};

}  // namespace weir
