#include "mds/ns/file_leases.h"

#include <algorithm>

namespace weir::mds {
namespace {
constexpr Duration kRestSweep = std::chrono::seconds(10);
}  // namespace

void FileLeases::Begin(uint64_t session, uint64_t epoch) {
  End(session);
  const std::lock_guard lock(mutex_);
  sessions_[session].epoch = epoch;
}

void FileLeases::End(uint64_t session) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const auto held = std::move(found->second.held);
  for (const auto& [inode, kind] : held) DropLocked(session, inode);
  sessions_.erase(found);
}

void FileLeases::AwaitUnknown() {
  const std::lock_guard lock(mutex_);
  unknown_until_ = clock_.Now() + options_.term;
}

bool FileLeases::AwaitsUnknown() const {
  const std::lock_guard lock(mutex_);
  return clock_.Now() < unknown_until_;
}

std::optional<FileLeases::Grant> FileLeases::Offer(uint64_t session, uint64_t inode,
                                                   const OpenFiles& opens) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !opens.IsOpenBy(session, inode)) return std::nullopt;
  File& file = files_[inode];
  for (const auto& [holder, hold] : file.holds) {
    const bool mine = holder == session;
    // A recall that is not obeyed yet would take the new lease along.
    if (mine && hold.recalled()) return std::nullopt;
    if (!mine && hold.kind == Kind::kWrite) return std::nullopt;
  }
  Kind now_due = Kind::kTold;
  if (clock_.Now() >= file.rests_until) {
    now_due = opens.WritesAlone(session, inode) ? Kind::kWrite : Kind::kRead;
  }
  Hold& hold = file.holds[session];
  hold.kind = std::max(hold.kind, now_due);
  found->second.held[inode] = hold.kind;
  if (hold.kind == Kind::kTold) return std::nullopt;
  return Grant{found->second.epoch, found->second.seq, hold.kind == Kind::kWrite};
}

void FileLeases::Closed(uint64_t session, uint64_t inode) {
  const std::lock_guard lock(mutex_);
  DropLocked(session, inode);
}

void FileLeases::DropLocked(uint64_t session, uint64_t inode) {
  const auto known = sessions_.find(session);
  if (known != sessions_.end()) {
    known->second.held.erase(inode);
    known->second.recalled.erase(inode);
  }
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  found->second.holds.erase(session);
  // A rest that is forgotten with the file costs one more recall.
  if (found->second.holds.empty()) files_.erase(found);
}

// A lease that was not given up in time has ended, unless it is one for writing.
bool FileLeases::InTheWay(const Hold& hold) const {
  if (hold.kind == Kind::kTold) return false;
  const bool ended = hold.recalled() && clock_.Now() >= hold.recalled_at + options_.term;
  return hold.kind == Kind::kWrite || !ended;
}

void FileLeases::RecallLocked(uint64_t holder, uint64_t inode, Hold* hold, Verdict* verdict) {
  Session& owner = sessions_.at(holder);
  hold->last_recall = ++owner.seq;
  if (!hold->recalled()) {
    hold->first_recall = hold->last_recall;
    hold->recalled_at = clock_.Now();
  }
  owner.recalled[inode] = hold->last_recall;
  verdict->asked = true;
}

void FileLeases::AskToShowLocked(uint64_t session, uint64_t inode, Verdict* verdict) {
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  File& file = found->second;
  for (auto& [holder, hold] : file.holds) {
    if (holder == session || hold.kind != Kind::kWrite) continue;
    verdict->in_the_way = true;
    file.rests_until = clock_.Now() + options_.rest;
    if (!hold.recalled()) RecallLocked(holder, inode, &hold, verdict);
  }
}

void FileLeases::AskToChangeLocked(uint64_t session, uint64_t inode, std::vector<Told>* told,
                                   Verdict* verdict) {
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  File& file = found->second;
  const TimePoint now = clock_.Now();
  for (auto& [holder, hold] : file.holds) {
    if (holder == session) continue;
    if (InTheWay(hold)) {
      verdict->in_the_way = true;
      file.rests_until = now + options_.rest;
    }
    auto mine = std::find_if(told->begin(), told->end(), [&, holder = holder](const Told& one) {
      return one.session == holder && one.inode == inode;
    });
    if (mine == told->end()) {
      // Anew, though an earlier recall may be under way: that may have been obeyed before now.
      RecallLocked(holder, inode, &hold, verdict);
      const TimePoint until = hold.recalled_at + options_.term;
      mine = told->insert(mine, {holder, inode, hold.last_recall, until});
    }
    if (hold.obeyed < mine->seq && now < mine->until) verdict->in_the_way = true;
  }
}

FileLeases::Verdict FileLeases::Ask(uint64_t session, std::span<const uint64_t> shown,
                                    std::span<const uint64_t> changed, std::vector<Told>* told) {
  Verdict verdict;
  const std::lock_guard lock(mutex_);
  if (files_.empty()) return verdict;
  for (const uint64_t inode : shown) AskToShowLocked(session, inode, &verdict);
  for (const uint64_t inode : changed) AskToChangeLocked(session, inode, told, &verdict);
  return verdict;
}

bool FileLeases::HasRecalls(uint64_t session, uint64_t heard_seq) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.seq > heard_seq;
}

FileLeases::Recall FileLeases::RecallsOf(uint64_t session, uint64_t heard_seq) const {
  const std::lock_guard lock(mutex_);
  Recall recall;
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return recall;
  recall.seq = found->second.seq;
  for (const auto& [inode, seq] : found->second.recalled) {
    if (seq > heard_seq) recall.inodes.push_back(inode);
  }
  return recall;
}

bool FileLeases::Yield(uint64_t session, const Grant& as_of, std::span<const uint64_t> inodes) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.epoch != as_of.epoch) return false;
  bool held = false;
  for (const uint64_t inode : inodes) {
    const auto recalled = found->second.recalled.find(inode);
    if (recalled == found->second.recalled.end()) continue;
    Hold& hold = files_.at(inode).holds.at(session);
    if (as_of.seq < hold.first_recall) continue;
    // It has the file open still, and maybe mapped: it is told of what comes.
    hold.kind = found->second.held[inode] = Kind::kTold;
    hold.obeyed = as_of.seq;
    if (hold.last_recall > as_of.seq) {
      hold.first_recall = as_of.seq + 1;
      hold.recalled_at = clock_.Now();
    } else {
      hold.first_recall = hold.last_recall = 0;
      found->second.recalled.erase(recalled);
    }
    held = true;
  }
  return held;
}

void FileLeases::Tick() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (now < next_sweep_) return;
  next_sweep_ = now + kRestSweep;
  std::erase_if(files_, [&](const auto& entry) {
    return entry.second.holds.empty() && entry.second.rests_until <= now;
  });
}

bool FileLeases::HoldsWrites(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  const auto& held = found->second.held;
  return std::any_of(held.begin(), held.end(),
                     [](const auto& entry) { return entry.second == Kind::kWrite; });
}

std::vector<uint64_t> FileLeases::Overdue() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> overdue;
  const TimePoint now = clock_.Now();
  for (const auto& [id, session] : sessions_) {
    const auto late = [&, id = id](const auto& recalled) {
      const auto file = files_.find(recalled.first);
      if (file == files_.end()) return false;
      const auto hold = file->second.holds.find(id);
      return hold != file->second.holds.end() && hold->second.kind == Kind::kWrite &&
             now - hold->second.recalled_at > options_.patience;
    };
    if (std::any_of(session.recalled.begin(), session.recalled.end(), late)) overdue.push_back(id);
  }
  return overdue;
}

}  // namespace weir::mds
