#include "common/qos/flow_meter.h"

#include <algorithm>
#include <string>
#include <unordered_map>

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
  FlowOwner owner{source.session, by_cgroup, source.uid, nullptr, source.opener};
  if (!by_cgroup || source.cgroup.empty()) return owner;
  std::string path(CutCgroup(source.cgroup));
  // Our mounts escape such bytes; what others send goes to terminals and documents as well.
  std::replace_if(
      path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  owner.path = std::make_shared<const std::string>(std::move(path));
  return owner;
}

FlowKey CountedKeyOf(FlowSource source) {
  if (source.kind != FlowKind::kCgroup) source.kind = FlowKind::kUser;
  return KeyOf(source);
}

void FlowMeter::MoveTo(TimePoint now) {
  const Duration age = now - began_;
  if (age < kTurn) return;
  before_ = age < 2 * kTurn ? std::make_shared<const Table>(std::move(running_)) : nullptr;
  before_began_ = age < 2 * kTurn ? began_ : now;
  running_ = {};
  began_ = now;
}

// The first is the user's key.
std::vector<std::pair<uint64_t, FlowMeter::Row>> FlowMeter::Largest(const Sums& entries,
                                                                    size_t most) {
  using Place = Sums::value_type;
  std::vector<const Place*> order;
  order.reserve(entries.size());
  for (const Place& place : entries) order.push_back(&place);
  const size_t count = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [](const Place* a, const Place* b) {
                      return a->second.fact.rank_ns() > b->second.fact.rank_ns();
                    });
  std::vector<std::pair<uint64_t, Row>> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({order[i]->first.user, {order[i]->second.owner, order[i]->second.fact, 0}});
  }
  return rows;
}

template <typename Rows>
void FlowMeter::AddTo(const Rows& more, Sums* sum) {
  for (const auto& [key, entry] : more) {
    sum->try_emplace(key, Uses::Entry{entry.owner, {}}).first->second.fact += entry.fact;
  }
}

FlowMeter::Look FlowMeter::LookAt(TimePoint now) {
  MoveTo(now);
  const Uses::Entries& users = running_.users.entries();
  const Uses::Entries& openers = running_.openers.entries();
  return {.window = std::max(now - before_began_, kShortest),
          .users = {users.begin(), users.end()},
          .openers = {openers.begin(), openers.end()},
          .all = running_.all,
          .before = before_};
}

FlowMeter::Report FlowMeter::ReportOf(const Look& look, size_t most) {
  Sums users, openers;
  AddTo(look.users, &users);
  AddTo(look.openers, &openers);
  Report report;
  report.window = look.window;
  report.all = look.all;
  if (look.before != nullptr) {
    AddTo(look.before->users.entries(), &users);
    AddTo(look.before->openers.entries(), &openers);
    report.all += look.before->all;
  }
  std::unordered_map<uint64_t, uint32_t> openers_of;
  for (const auto& [key, entry] : openers) ++openers_of[key.user];

  report.users_seen = users.size();
  report.openers_seen = openers.size();
  for (auto& [user, row] : Largest(users, most)) {
    row.openers = openers_of[user];
    report.users.push_back(std::move(row));
  }
  for (auto& [user, row] : Largest(openers, most)) report.openers.push_back(std::move(row));
  return report;
}

}  // namespace weir
