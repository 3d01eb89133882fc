#include "mds/ns/file_leases.h"

#include <algorithm>
#include <utility>

namespace weir::mds {
namespace {
constexpr Duration kRestSweep = std::chrono::seconds(10);
constexpr size_t kRounds = 64;
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
  if (found == sessions_.end()) return std::nullopt;
  const bool open = opens.IsOpenBy(session, inode);
  if (!open && opens.WrittenElsewhere(session, inode)) return std::nullopt;
  const auto known = files_.find(inode);
  bool alone = true;
  bool rests = false;
  bool mine = false;
  if (known != files_.end()) {
    rests = known->second.rest.On(clock_.Now());
    for (const auto& [holder, hold] : known->second.holds) {
      // A recall that is not obeyed yet would take the new lease along.
      if (holder == session && hold.recalled()) return std::nullopt;
      if (holder != session && hold.kind == Kind::kWrite) return std::nullopt;
      mine = mine || holder == session;
      alone = alone && holder == session;
    }
  }
  if (!open && (rests || (!mine && !HasRoomLocked(session, &found->second)))) return std::nullopt;
  if (!mine && being_cut_.contains(inode)) return std::nullopt;
  Kind now_due = Kind::kTold;
  if (!rests) now_due = alone && opens.WritesAlone(session, inode) ? Kind::kWrite : Kind::kRead;
  Hold& hold = files_[inode].holds[session];
  if (!open && !mine) ListLocked(inode, &found->second, &hold);
  hold.open = open;
  hold.kind = std::max(hold.kind, now_due);
  found->second.held[inode] = hold.kind;
  if (hold.kind == Kind::kTold) return std::nullopt;
  return Grant{found->second.epoch, found->second.seq, hold.kind == Kind::kWrite, !open && !mine};
}

void FileLeases::ListLocked(uint64_t inode, Session* session, Hold* hold) {
  if (!std::exchange(hold->listed, true)) session->looks.push_back(inode);
}

size_t FileLeases::LooksMaxLocked() const {
  const size_t part = options_.looks_most / std::max<size_t>(sessions_.size(), 1);
  return std::max(part, options_.looks_least);
}

// A session that does not give back what it is asked for gets nothing new either. In rounds: it
// hears of many with one answer to its WATCH.
bool FileLeases::HasRoomLocked(uint64_t id, Session* session) {
  constexpr size_t kUnderWay = 1024;
  const size_t most = LooksMaxLocked();
  if (session->looks.size() < most) return true;
  const size_t enough = most - most / kRounds;
  while (session->looks.size() >= enough && session->recalled.size() < kUnderWay) {
    const uint64_t oldest = session->looks.front();
    session->looks.pop_front();
    if (!session->held.contains(oldest)) continue;
    Hold& hold = files_.at(oldest).holds.at(id);
    hold.listed = false;
    if (hold.open || hold.recalled()) continue;
    Verdict nobody_waits;
    RecallLocked(id, oldest, &hold, &nobody_waits);
  }
  return session->looks.size() < most;
}

void FileLeases::Restore(uint64_t session, uint64_t inode) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Hold& hold = files_[inode].holds[session];
  hold.open = true;
  hold.kind = found->second.held[inode] = Kind::kWrite;
  Verdict nobody_waits;
  RecallLocked(session, inode, &hold, &nobody_waits);
}

void FileLeases::Withdraw(uint64_t session, uint64_t inode) {
  const std::lock_guard lock(mutex_);
  DropLocked(session, inode);
}

void FileLeases::Closed(uint64_t session, uint64_t inode) {
  const std::lock_guard lock(mutex_);
  const auto known = sessions_.find(session);
  if (known == sessions_.end() || !known->second.held.contains(inode)) return;
  Hold& hold = files_.at(inode).holds.at(session);
  if (!hold.open) return;
  hold.open = false;
  if (hold.kind == Kind::kTold && !hold.recalled()) return DropLocked(session, inode);
  hold.kind = std::min(hold.kind, Kind::kRead);
  known->second.held[inode] = hold.kind;
  ListLocked(inode, &known->second, &hold);
  (void)HasRoomLocked(session, &known->second);  // of what is made and closed, nothing is looked at
}

void FileLeases::Moves(uint64_t session, uint64_t from, uint64_t to) {
  const std::lock_guard lock(mutex_);
  const auto known = sessions_.find(session);
  if (known == sessions_.end()) return;
  Session& mover = known->second;
  if (!mover.held.contains(from) || mover.held.contains(to)) return;
  File& target = files_[to];
  if (target.rest.On(clock_.Now())) return;
  Hold& hold = target.holds[session];
  mover.held[to] = Kind::kTold;
  ListLocked(to, &mover, &hold);
}

void FileLeases::Read(uint64_t session, uint64_t inode) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  Verdict nobody_waits;
  for (auto& [holder, hold] : found->second.holds) {
    if (holder == session || hold.kind != Kind::kRead || hold.recalled()) continue;
    RecallLocked(holder, inode, &hold, &nobody_waits);
  }
}

void FileLeases::BeginCut(uint64_t inode) {
  const std::lock_guard lock(mutex_);
  being_cut_.insert(inode);
}

void FileLeases::EndCut(uint64_t inode) {
  const std::lock_guard lock(mutex_);
  being_cut_.erase(inode);
}

bool FileLeases::IsBeingCut(uint64_t inode) const {
  const std::lock_guard lock(mutex_);
  return being_cut_.contains(inode);
}

void FileLeases::Gone(uint64_t inode) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  found->second.rest.End();
  const auto holds = found->second.holds;
  for (const auto& [session, hold] : holds) DropLocked(session, inode);
  files_.erase(inode);
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
  if (found->second.holds.empty() && !found->second.rest.On(clock_.Now())) files_.erase(found);
}

// A lease that was not given up in time has ended, unless it is one for writing.
bool FileLeases::InTheWay(const Hold& hold) const {
  if (hold.kind == Kind::kTold) return false;
  const bool ended = hold.recalled() && clock_.Now() >= hold.recalled_at + options_.term;
  return hold.kind == Kind::kWrite || !ended;
}

void FileLeases::AwaitLocked(Hold* hold) const {
  hold->awaited.Ask(clock_.Now(), round_);
}

void FileLeases::BeginRound() {
  const std::lock_guard lock(mutex_);
  ++round_;
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
    AwaitLocked(&hold);
    file.rest.Begin(clock_.Now(), options_.rest);
    if (!hold.recalled()) RecallLocked(holder, inode, &hold, verdict);
  }
}

void FileLeases::AskToChangeLocked(uint64_t session, uint64_t inode, Change change,
                                   std::vector<Told>* told, Verdict* verdict) {
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  File& file = found->second;
  const TimePoint now = clock_.Now();
  if (change == Change::kDirectory && file.rest.On(now))
    file.rest.Begin(now, options_.directory_rest);
  for (auto& [holder, hold] : file.holds) {
    if (holder == session || (change == Change::kClaim && hold.open)) continue;
    if (InTheWay(hold)) {
      verdict->in_the_way = true;
      AwaitLocked(&hold);
      if (change == Change::kFile) file.rest.Begin(now, options_.rest);
      if (change == Change::kDirectory) file.rest.Begin(now, options_.directory_rest);
    }
    auto mine = std::find_if(told->begin(), told->end(), [&, holder = holder](const Told& one) {
      return one.session == holder && one.inode == inode;
    });
    if (mine == told->end()) {
      // Anew, though an earlier recall may be under way: that may have been obeyed before now.
      RecallLocked(holder, inode, &hold, verdict);
      const TimePoint until = hold.recalled_at + options_.term;
      mine = told->insert(mine, {holder, inode, hold.last_recall, until});
    } else if (InTheWay(hold) && !hold.recalled()) {
      RecallLocked(holder, inode, &hold, verdict);  // it has looked again meanwhile
    }
    if (hold.obeyed < mine->seq && now < mine->until) verdict->in_the_way = true;
  }
}

FileLeases::Verdict FileLeases::Ask(uint64_t session, const Wish& wish, std::vector<Told>* told) {
  Verdict verdict;
  const std::lock_guard lock(mutex_);
  if (files_.empty()) return verdict;
  for (const uint64_t inode : wish.shown) AskToShowLocked(session, inode, &verdict);
  const auto change = [&](std::span<const uint64_t> inodes, Change how) {
    for (const uint64_t inode : inodes) AskToChangeLocked(session, inode, how, told, &verdict);
  };
  change(wish.changed, Change::kFile);
  change(wish.changed_directories, Change::kDirectory);
  change(wish.claimed, Change::kClaim);
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
    // If it has the file open still, and maybe mapped, it is told of what comes.
    hold.kind = found->second.held[inode] = Kind::kTold;
    hold.obeyed = as_of.seq;
    hold.awaited.End();
    held = true;
    if (hold.last_recall > as_of.seq) {
      hold.first_recall = as_of.seq + 1;
      hold.recalled_at = clock_.Now();
    } else if (hold.open) {
      hold.first_recall = hold.last_recall = 0;
      found->second.recalled.erase(recalled);
    } else {
      DropLocked(session, inode);
    }
  }
  return held;
}

void FileLeases::Tick() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (now < next_sweep_) return;
  next_sweep_ = now + kRestSweep;
  std::erase_if(files_, [&](const auto& entry) {
    return entry.second.holds.empty() && !entry.second.rest.On(now);
  });
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
             hold->second.awaited.ForLongerThan(options_.patience, now, round_);
    };
    if (std::any_of(session.recalled.begin(), session.recalled.end(), late)) overdue.push_back(id);
  }
  return overdue;
}

}  // namespace weir::mds
