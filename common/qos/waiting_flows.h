// WaitingFlows: whose requests of a class wait now, and for how long: its users, and their openers,
// so many told apart as flow_table.h says (at most 0.8 MiB). What is known is kept as requests come
// and leave, so that a look costs by those who are told apart and not by what waits.
//
// Units: device time as the scheduler expected it. Cost: O(1) a request on average. Threads: not
// thread-safe. Pure.
#pragma once

#include <cstdint>

#include "common/base/time.h"
#include "common/qos/flow_meter.h"
#include "common/qos/flow_table.h"

namespace weir {

class WaitingFlows {
 public:
  // A request that waits, as its owner keeps it until it leaves.
  struct Ticket {
    FlowKey key;
    double cost_ns = 0;
    TimePoint came;
    uint64_t number = 0;
  };

  // Fills in the ticket but for its key and cost. `owner()` as FlowMeter::Add has it. `now` never
  // goes backwards.
  template <typename OwnerOfKey>
  void Come(Ticket* ticket, TimePoint now, const OwnerOfKey& owner) {
    ticket->came = now;
    ticket->number = ++last_;
    // A table that has dropped somebody counts him from the next one on.
    const Waiters fresh{.first = ticket->number};
    openers_.Find(ticket->key, owner, fresh).Come(*ticket);
    users_.Find({ticket->key.user, 0}, owner, fresh).Come(*ticket);
    all_.Come(*ticket);
  }
  // It is served, or dropped.
  void Leave(const Ticket& ticket);

  // Adds what waits to what was served: at most 2 * FlowOrder::kFlowsMax rows.
  void AddTo(FlowMeter::Look* look, TimePoint now) const;

 private:
  struct Waiters {
    uint64_t first = 0;  // number of the first that is counted
    uint64_t waiting = 0;
    double waiting_ns = 0;
    Duration waited{0};  // until `at`
    TimePoint at;        // the last of them came

    void MoveTo(TimePoint now);
    void Come(const Ticket& ticket);
    void Leave(const Ticket& ticket);
    [[nodiscard]] FlowUse At(TimePoint now) const;
    // Who does not wait any more is the first to be dropped.
    [[nodiscard]] double rank_ns() const { return waiting_ns; }
  };
  using Table = FlowTable<Waiters>;
  static void LeaveOne(FlowKey key, const Ticket& ticket, Table* table);

  Table users_;
  Table openers_;
  Waiters all_;
  uint64_t last_ = 0;
};

}  // namespace weir
