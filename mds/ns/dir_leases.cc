#include "mds/ns/dir_leases.h"

#include <algorithm>

#include "common/base/prng.h"

namespace weir::mds {
namespace {
constexpr Duration kSweepInterval = std::chrono::seconds(10);
}  // namespace

uint64_t DirLeases::Begin(uint64_t session) {
  End(session);
  const std::lock_guard lock(mutex_);
  Holder& holder = holders_[session];
  holder.epoch = RandomSeed() | 1;
  return holder.epoch;
}

void DirLeases::End(uint64_t session) {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(session);
  if (found == holders_.end()) return;
  for (const uint64_t directory : found->second.held) DropLocked(session, directory);
  holders_.erase(found);
}

void DirLeases::AwaitUnknown() {
  const std::lock_guard lock(mutex_);
  unknown_until_ = clock_.Now() + options_.term;
}

std::optional<DirLeases::Grant> DirLeases::TryGrant(uint64_t session, uint64_t directory) {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(session);
  if (found == holders_.end()) return std::nullopt;
  Holder& holder = found->second;
  const TimePoint now = clock_.Now();
  const auto known = leases_.find(directory);
  if (known != leases_.end()) {
    const auto held = known->second.gone_at.find(session);
    const bool recalled = held != known->second.gone_at.end() && held->second != TimePoint::Max();
    // A recall that is not obeyed yet would take the new lease along.
    if (recalled || known->second.rest.On(now)) return std::nullopt;
  }
  if (holder.held.size() >= options_.per_session_max) {
    // Nobody tells which ones are still of use: begin anew.
    for (const uint64_t held : holder.held) RecallLocked(session, held);
    return std::nullopt;
  }
  leases_[directory].gone_at[session] = TimePoint::Max();
  holder.held.insert(directory);
  return Grant{holder.epoch, holder.seq};
}

uint64_t DirLeases::GrantAppend(uint64_t session, uint64_t file) {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(session);
  if (found == holders_.end()) return 0;
  Lease& lease = leases_[file];
  lease.append_grant = ++last_grant_;
  lease.gone_at[session] = TimePoint::Max();
  found->second.held.insert(file);
  return lease.append_grant;
}

bool DirLeases::AppendInTheWay(uint64_t session, uint64_t file) {
  if (file == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto found = leases_.find(file);
  if (found == leases_.end()) return false;
  bool in_the_way = false;
  for (const auto& [holder, gone_at] : found->second.gone_at) {
    if (holder == session || gone_at <= clock_.Now()) continue;
    in_the_way = true;
    RecallLocked(holder, file);
  }
  return in_the_way;
}

void DirLeases::GiveBackAppend(uint64_t session, uint64_t file, uint64_t grant) {
  const std::lock_guard lock(mutex_);
  const auto lease = leases_.find(file);
  if (lease == leases_.end() || grant == 0 || lease->second.append_grant != grant) return;
  lease->second.gone_at.erase(session);
  const auto found = holders_.find(session);
  if (found == holders_.end()) return;
  found->second.held.erase(file);
  std::erase_if(found->second.recalled,
                [file](const Recalled& one) { return one.directory == file; });
}

void DirLeases::RecallLocked(uint64_t session, uint64_t directory) {
  Lease& lease = leases_[directory];
  TimePoint& gone_at = lease.gone_at[session];
  if (gone_at != TimePoint::Max()) return;
  gone_at = clock_.Now() + (lease.append_grant != 0 ? options_.append_term : options_.term);
  Holder& holder = holders_[session];
  holder.recalled.push_back({++holder.seq, directory, lease.append_grant != 0});
}

void DirLeases::DropLocked(uint64_t session, uint64_t directory) {
  const auto found = leases_.find(directory);
  if (found != leases_.end()) found->second.gone_at.erase(session);
}

bool DirLeases::InTheWay(uint64_t session, const std::vector<uint64_t>& directories) {
  if (directories.empty()) return false;
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  bool in_the_way = now < unknown_until_;
  for (const uint64_t directory : directories) {
    const auto found = leases_.find(directory);
    if (found == leases_.end()) continue;
    for (const auto& [holder, gone_at] : found->second.gone_at) {
      // A right to append that goes back goes before the same session gets the next.
      const bool own = holder == session;
      const bool returning = found->second.append_grant != 0 && gone_at != TimePoint::Max();
      if (gone_at <= now || (own && !returning)) continue;
      in_the_way = true;
      if (gone_at == TimePoint::Max()) RecallLocked(holder, directory);
    }
  }
  if (!in_the_way) return false;
  for (const uint64_t directory : directories) {
    // Also those that nobody holds: a new lease would be in the way next.
    leases_[directory].rest.Begin(now, options_.rest);
  }
  return true;
}

bool DirLeases::HasRecalls(uint64_t session, uint64_t obeyed_seq) const {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(session);
  return found != holders_.end() && found->second.seq > obeyed_seq;
}

DirLeases::Recall DirLeases::RecallsOf(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  Recall recall;
  const auto found = holders_.find(session);
  if (found == holders_.end()) return recall;
  recall.epoch = found->second.epoch;
  recall.seq = found->second.seq;
  for (const Recalled& one : found->second.recalled) {
    (one.append ? recall.appends : recall.directories).push_back(one.directory);
  }
  return recall;
}

bool DirLeases::Obeyed(uint64_t session, uint64_t seq) {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(session);
  if (found == holders_.end() || seq <= found->second.obeyed) return false;
  Holder& holder = found->second;
  holder.obeyed = std::min(seq, holder.seq);
  std::erase_if(holder.recalled, [&](const Recalled& one) {
    if (one.seq > seq) return false;
    if (one.append) return true;  // heard; it is obeyed when it is given back
    DropLocked(session, one.directory);
    holder.held.erase(one.directory);
    return true;
  });
  return true;
}

void DirLeases::Tick() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepInterval;
  std::erase_if(leases_, [&](const auto& entry) {
    return entry.second.gone_at.empty() && !entry.second.rest.On(now);
  });
}

bool DirLeases::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

void DirLeases::set_recorded(bool recorded) {
  const std::lock_guard lock(mutex_);
  recorded_ = recorded;
}

}  // namespace weir::mds
