#include "common/qos/flow_meter.h"

#include <algorithm>

namespace weir {

void FlowUse::operator+=(const FlowUse& other) {
  device_ns += other.device_ns;
  requests += other.requests;
  bytes += other.bytes;
  light_requests += other.light_requests;
  waiting += other.waiting;
  waiting_ns += other.waiting_ns;
  waited += other.waited;
}

FlowOwner OwnerOf(const FlowSource& source) {
  const bool by_cgroup = source.kind == FlowKind::kCgroup;
  std::string cgroup(by_cgroup ? source.cgroup : std::string_view());
  // Our mounts escape such bytes; what others send goes to terminals and documents as well.
  std::replace_if(
      cgroup.begin(), cgroup.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return {source.session, by_cgroup, source.uid, std::move(cgroup), source.opener};
}

FlowKey CountedKeyOf(FlowSource source) {
  if (source.kind != FlowKind::kCgroup) source.kind = FlowKind::kUser;
  return KeyOf(source);
}

void FlowMeter::MoveTo(TimePoint now) {
  const Duration age = now - began_;
  if (age < kTurn) return;
  before_ = age < 2 * kTurn ? std::move(running_) : Table();
  before_began_ = age < 2 * kTurn ? began_ : now;
  running_ = {};
  began_ = now;
}

void FlowMeter::DropLesser(Entries* entries) {
  std::vector<double> times;
  times.reserve(entries->size());
  for (const auto& [key, entry] : *entries) times.push_back(entry.use.wanted_ns());
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  size_t left = times.size() / 2;
  std::erase_if(*entries, [&left, least = *middle](const auto& entry) {
    if (left == 0 || entry.second.use.wanted_ns() > least) return false;
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
                      return a->second.use.wanted_ns() > b->second.use.wanted_ns();
                    });
  std::vector<std::pair<uint64_t, Row>> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({order[i]->first.user, {order[i]->second.owner, order[i]->second.use, 0}});
  }
  return rows;
}

void FlowMeter::AddTable(const Table& more, Table* sum) {
  const auto add = [](const Entries& from, Entries* to) {
    for (const auto& [key, entry] : from) {
      Entry& one = to->try_emplace(key, Entry{entry.owner, {}}).first->second;
      one.use += entry.use;
    }
  };
  add(more.users, &sum->users);
  add(more.openers, &sum->openers);
  sum->all += more.all;
}

FlowMeter::Report FlowMeter::At(TimePoint now, size_t most, const FlowMeter* queue) {
  MoveTo(now);
  Table sum = running_;
  AddTable(before_, &sum);
  if (queue != nullptr) AddTable(queue->running_, &sum);
  std::unordered_map<uint64_t, uint32_t> openers_of;
  for (const auto& [key, entry] : sum.openers) ++openers_of[key.user];

  Report report;
  report.window = std::max(now - before_began_, kShortest);
  report.all = sum.all;
  report.users_seen = sum.users.size();
  report.openers_seen = sum.openers.size();
  for (auto& [user, row] : Largest(sum.users, most)) {
    row.openers = openers_of[user];
    report.users.push_back(std::move(row));
  }
  for (auto& [user, row] : Largest(sum.openers, most)) report.openers.push_back(std::move(row));
  return report;
}

}  // namespace weir
