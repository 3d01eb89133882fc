#include "osd/io/flow_meter.h"

#include <algorithm>

namespace weir::osd {

void FlowUse::operator+=(const FlowUse& other) {
  device_ns += other.device_ns;
  requests += other.requests;
  bytes += other.bytes;
  light_requests += other.light_requests;
}

void FlowMeter::MoveTo(TimePoint now) {
  const Duration age = now - began_;
  if (age < kTurn) return;
  before_ = age < 2 * kTurn ? std::move(running_) : Table();
  before_began_ = age < 2 * kTurn ? began_ : now;
  running_ = {};
  began_ = now;
}

FlowMeter::Entry* FlowMeter::Find(Entries* entries, FlowKey key) {
  if (const auto known = entries->find(key); known != entries->end()) return &known->second;
  if (entries->size() >= FlowOrder::kFlowsMax) DropLesser(entries);
  return &(*entries)[key];
}

void FlowMeter::DropLesser(Entries* entries) {
  std::vector<double> times;
  times.reserve(entries->size());
  for (const auto& [key, entry] : *entries) times.push_back(entry.use.device_ns);
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  size_t left = times.size() / 2;
  std::erase_if(*entries, [&left, least = *middle](const auto& entry) {
    if (left == 0 || entry.second.use.device_ns > least) return false;
    --left;
    return true;
  });
}

// The first is the user's key.
std::vector<std::pair<uint64_t, FlowMeter::Row>> FlowMeter::Largest(const Entries& entries,
                                                                    size_t most) {
  using Place = std::pair<const FlowKey, Entry>;
  std::vector<const Place*> order;
  order.reserve(entries.size());
  for (const Place& place : entries) order.push_back(&place);
  const size_t count = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [](const Place* a, const Place* b) {
                      return a->second.use.device_ns > b->second.use.device_ns;
                    });
  std::vector<std::pair<uint64_t, Row>> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({order[i]->first.user, {order[i]->second.owner, order[i]->second.use, 0}});
  }
  return rows;
}

FlowMeter::Entries FlowMeter::Both(Entries one, const Entries& other) {
  for (const auto& [key, entry] : other) {
    Entry& sum = one[key];
    if (sum.use.requests == 0) sum.owner = entry.owner;
    sum.use += entry.use;
  }
  return one;
}

FlowMeter::Report FlowMeter::At(TimePoint now, size_t most) {
  MoveTo(now);
  const Entries users = Both(running_.users, before_.users);
  const Entries openers = Both(running_.openers, before_.openers);
  std::unordered_map<uint64_t, uint32_t> openers_of;
  for (const auto& [key, entry] : openers) ++openers_of[key.user];

  Report report;
  report.window = std::max(now - before_began_, kShortest);
  report.device_ns = before_.device_ns + running_.device_ns;
  report.users_seen = users.size();
  report.openers_seen = openers.size();
  for (auto& [user, row] : Largest(users, most)) {
    row.openers = openers_of[user];
    report.users.push_back(std::move(row));
  }
  for (auto& [user, row] : Largest(openers, most)) report.openers.push_back(std::move(row));
  return report;
}

}  // namespace weir::osd
