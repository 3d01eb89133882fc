// FlowMeter: whose requests used the device for a class in the last 5 to 10 s: its users, and their
// openers. Two tables take turns, so that the past is forgotten without being kept in pieces. Each
// tells at most FlowOrder::kFlowsMax users and openers apart; one more, and those with less device
// time than half of them are only part of the sums.
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

namespace weir::osd {

// Who is behind a key. Of a user `opener` says nothing.
struct FlowOwner {
  uint64_t session = 0;  // of the mount
  bool by_cgroup = false;
  uint32_t uid = 0;
  std::string cgroup;  // of whom by_cgroup tells apart
  uint64_t opener = 0;
};

struct FlowUse {
  double device_ns = 0;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t light_requests = 0;

  void operator+=(const FlowUse& other);
};

class FlowMeter {
 public:
  static constexpr Duration kTurn = std::chrono::seconds(5);
  // Less than that says nothing of a rate: who has just begun is shown with too little of it.
  static constexpr Duration kShortest = std::chrono::seconds(1);

  struct Row {
    FlowOwner owner;
    FlowUse use;
    uint32_t openers = 0;  // of a user: how many were served
  };
  struct Report {
    Duration window{};
    double device_ns = 0;   // of all
    size_t users_seen = 0;  // at most
    size_t openers_seen = 0;
    std::vector<Row> users;  // the most device time first
    std::vector<Row> openers;
  };

  explicit FlowMeter(TimePoint now) : began_(now), before_began_(now) {}

  // `owner()` is called only for whom the running table does not know.
  template <typename OwnerOf>
  void Add(FlowKey key, const FlowUse& use, TimePoint now, const OwnerOf& owner) {
    MoveTo(now);
    Entry* opener = Find(&running_.openers, key);
    Entry* user = Find(&running_.users, {key.user, 0});
    if (opener->use.requests == 0) opener->owner = owner();
    if (user->use.requests == 0) user->owner = owner();
    opener->use += use;
    user->use += use;
    running_.device_ns += use.device_ns;
  }
  // The `most` users and openers with the most device time.
  [[nodiscard]] Report At(TimePoint now, size_t most);

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
    double device_ns = 0;
  };

  void MoveTo(TimePoint now);
  static Entry* Find(Entries* entries, FlowKey key);
  static void DropLesser(Entries* entries);
  static std::vector<std::pair<uint64_t, Row>> Largest(const Entries& entries, size_t most);
  static Entries Both(Entries one, const Entries& other);

  Table running_;
  Table before_;
  TimePoint began_;         // running_
  TimePoint before_began_;  // before_, or what of it is left
};

}  // namespace weir::osd
