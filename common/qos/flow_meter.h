// FlowMeter: whose requests were served for a class in the last 5 to 10 s, at a disk or by the MDS:
// its users, and their openers. Two tables take turns, so that the past is forgotten without being
// kept in pieces. Each tells at most FlowOrder::kFlowsMax users and openers apart; one more, and
// those with less device time than half of them are only part of the sums.
//
// Units: device time as the scheduler expected it. Cost: O(1) a request on average. Threads: not
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/qos/flow_kind.h"

namespace weir {

// Who is behind a key. Of a user `opener` says nothing.
struct FlowOwner {
  uint64_t session = 0;  // of the mount
  bool by_cgroup = false;
  uint32_t uid = 0;
  std::string cgroup;  // of whom by_cgroup tells apart
  uint64_t opener = 0;
};
FlowOwner OwnerOf(const FlowSource& source);
// By what he is counted: the same user and opener, whatever kind of flows his class has.
FlowKey CountedKeyOf(FlowSource source);

struct FlowUse {
  double device_ns = 0;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t light_requests = 0;
  // What is not served yet, where that is known, and what it will take.
  uint64_t waiting = 0;
  double waiting_ns = 0;
  Duration waited{0};  // all requests together, with those that wait

  void operator+=(const FlowUse& other);
  // How much somebody asks for.
  [[nodiscard]] double wanted_ns() const { return device_ns + waiting_ns; }
};

class FlowMeter {
 public:
  static constexpr Duration kTurn = std::chrono::seconds(5);
  // Less than that says nothing of a rate: who has just begun is shown with too little of it.
  static constexpr Duration kShortest = std::chrono::seconds(1);

  struct Row {
    FlowOwner owner;
    FlowUse use;
    uint32_t openers = 0;  // of a user: how many there were
  };
  struct Report {
    Duration window{};
    FlowUse all;
    size_t users_seen = 0;  // at most
    size_t openers_seen = 0;
    std::vector<Row> users;  // who asks for the most device time first
    std::vector<Row> openers;
  };

  explicit FlowMeter(TimePoint now) : began_(now), before_began_(now) {}

  // `owner()` is called only for whom the running table does not know.
  template <typename OwnerOfKey>
  void Add(FlowKey key, const FlowUse& use, TimePoint now, const OwnerOfKey& owner) {
    MoveTo(now);
    Find(&running_.openers, key, owner).use += use;
    Find(&running_.users, {key.user, 0}, owner).use += use;
    running_.all += use;
  }
  // The `most` users and openers who ask for the most. `queue` has what waits now.
  [[nodiscard]] Report At(TimePoint now, size_t most, const FlowMeter* queue = nullptr);

 private:
  struct Entry {
    FlowOwner owner;
    FlowUse use;
  };
  struct KeyHash {
    size_t operator()(const FlowKey& key) const { return MixHash(key.user, key.opener); }
  };
  using Entries = std::unordered_map<FlowKey, Entry, KeyHash>;
  struct Table {
    Entries users;
    Entries openers;
    FlowUse all;
  };

  void MoveTo(TimePoint now);
  template <typename OwnerOfKey>
  static Entry& Find(Entries* entries, FlowKey key, const OwnerOfKey& owner) {
    if (const auto known = entries->find(key); known != entries->end()) return known->second;
    if (entries->size() >= FlowOrder::kFlowsMax) DropLesser(entries);
    return entries->emplace(key, Entry{owner(), {}}).first->second;
  }
  static void DropLesser(Entries* entries);
  static std::vector<std::pair<uint64_t, Row>> Largest(const Entries& entries, size_t most);
  static void AddTable(const Table& more, Table* sum);

  Table running_;
  Table before_;
  TimePoint began_;         // running_
  TimePoint before_began_;  // before_, or what of it is left
};

}  // namespace weir
