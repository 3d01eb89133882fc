#include "common/qos/waiting_flows.h"

namespace weir {

void WaitingFlows::Waiters::MoveTo(TimePoint now) {
  waited += (now - at) * static_cast<int64_t>(waiting);
  at = now;
}

void WaitingFlows::Waiters::Come(const Ticket& ticket) {
  MoveTo(ticket.came);
  ++waiting;
  waiting_ns += ticket.cost_ns;
}

void WaitingFlows::Waiters::Leave(const Ticket& ticket) {
  --waiting;
  waiting_ns -= ticket.cost_ns;
  waited -= at - ticket.came;
}

FlowUse WaitingFlows::Waiters::At(TimePoint now) const {
  Waiters then = *this;
  then.MoveTo(now);
  return {.waiting = then.waiting, .waiting_ns = then.waiting_ns, .waited = then.waited};
}

void WaitingFlows::LeaveOne(FlowKey key, const Ticket& ticket, Table* table) {
  Waiters* const waiters = table->Known(key);
  if (waiters == nullptr || ticket.number < waiters->first) return;
  waiters->Leave(ticket);
}

void WaitingFlows::Leave(const Ticket& ticket) {
  LeaveOne(ticket.key, ticket, &openers_);
  LeaveOne({ticket.key.user, 0}, ticket, &users_);
  all_.Leave(ticket);
}

void WaitingFlows::AddTo(FlowMeter::Look* look, TimePoint now) const {
  const auto add = [now](const Table& table, FlowMeter::Look::Rows* rows) {
    rows->reserve(rows->size() + table.entries().size());
    for (const auto& [key, entry] : table.entries()) {
      if (entry.fact.waiting > 0) rows->push_back({key, {entry.owner, entry.fact.At(now)}});
    }
  };
  add(users_, &look->users);
  add(openers_, &look->openers);
  look->all += all_.At(now);
}

}  // namespace weir
