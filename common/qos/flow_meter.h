// FlowMeter: whose requests were served for a class in the last 5 to 10 s, at a disk or by the MDS:
// its users, and their openers. Two tables take turns, so that the past is forgotten without being
// kept in pieces. Each tells so many users and openers apart as flow_table.h says: at most 1.6 MiB
// for a class. Beyond that, those with less device time than half of them are only part of the
// sums.
//
// Units: device time as the scheduler expected it. Cost: O(1) a request on average. Threads: not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/qos/flow_kind.h"
#include "common/qos/flow_table.h"

namespace weir {

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
  [[nodiscard]] double rank_ns() const { return device_ns + waiting_ns; }
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
    running_.openers.Find(key, owner) += use;
    running_.users.Find({key.user, 0}, owner) += use;
    running_.all += use;
  }
  using Uses = FlowTable<FlowUse>;
  struct Table {
    Uses users;
    Uses openers;
    FlowUse all;
  };
  // What a report is made of. To take it costs by what the running table tells apart, as a copy of
  // at most 2 * FlowOrder::kFlowsMax rows: whoever takes it under a lock makes the report without.
  struct Look {
    using Rows = std::vector<std::pair<FlowKey, Uses::Entry>>;
    Duration window{};
    Rows users;
    Rows openers;
    FlowUse all;                          // of the rows, and of who is not told apart
    std::shared_ptr<const Table> before;  // counts as well; null: nothing
  };
  [[nodiscard]] Look LookAt(TimePoint now);
  // The `most` users and openers who ask for the most.
  [[nodiscard]] static Report ReportOf(const Look& look, size_t most);

 private:
  using Sums = Uses::Entries;

  void MoveTo(TimePoint now);
  static std::vector<std::pair<uint64_t, Row>> Largest(const Sums& entries, size_t most);
  template <typename Rows>
  static void AddTo(const Rows& more, Sums* sum);

  Table running_;
  std::shared_ptr<const Table> before_;  // null: nothing
  TimePoint began_;                      // running_
  TimePoint before_began_;               // before_, or what of it is left
};

}  // namespace weir
