#include "mds/locks/lock_service.h"

#include <utility>

#include "common/wire/mds.pb.h"
#include "mds/ns/namespace_db.h"

namespace weir::mds {
namespace {

// With a mount that is asked whether a lock is about to go.
constexpr Duration kPatience = std::chrono::seconds(2);

wire::LockReply ReplyOf(LockVerdict verdict) {
  wire::LockReply reply;
  reply.set_verdict(static_cast<wire::LockReply::Verdict>(verdict));
  return reply;
}

void TellAll(LockTable::Told told) {
  for (auto& [tell, verdict] : told) tell(verdict);
}

bool IsValid(const wire::FileLock& lock) {
  return lock.first() <= lock.last() && lock.last() <= FileLock::kLastByte &&
         lock.type() <= wire::FileLock::WRITE;
}

LockWish WishOf(uint64_t session, const wire::FileLock& lock) {
  LockWish wish;
  wish.inode = lock.inode();
  wish.flock = lock.flock();
  wish.lock.owner = {session, lock.owner()};
  wish.lock.first = lock.first();
  wish.lock.last = lock.last();
  wish.lock.write = lock.type() == wire::FileLock::WRITE;
  wish.lock.pid = lock.pid();
  return wish;
}

void FillConflict(const LockWish& wish, const FileLock& held, wire::FileLock* out) {
  out->set_inode(wish.inode);
  out->set_flock(wish.flock);
  out->set_type(held.write ? wire::FileLock::WRITE : wire::FileLock::READ);
  out->set_first(held.first);
  out->set_last(held.last);
  // Process numbers mean something on the asker's own machine only.
  if (held.owner.session == wish.lock.owner.session) out->set_pid(held.pid);
}

Status Malformed() {
  return {ErrorCode::kInvalid, "a lock's last byte lies before its first, or its type is unknown"};
}

}  // namespace

LockService::LockService(NamespaceDb& names, Clock& clock, const std::vector<uint64_t>& holders,
                         Callbacks callbacks)
    : names_(names),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      awaited_(holders.begin(), holders.end()),
      recorded_(holders.begin(), holders.end()) {}

void LockService::Lock(uint64_t session, const wire::LockRequest& request, Respond respond) {
  if (!IsValid(request.lock())) return respond(Malformed(), {});
  LockWish wish = WishOf(session, request.lock());
  wish.wait = request.wait();
  wish.ticket = request.ticket();
  if (request.lock().type() == wire::FileLock::NONE) {
    LockTable::Told told;
    {
      const std::lock_guard lock(mutex_);
      table_.Clear(wish, &told);
    }
    respond(Status::Ok(), ReplyOf(LockVerdict::kGranted));
    return TellAll(std::move(told));
  }
  Work work = [this, wish, respond] { SetNow(wish, respond, {}); };
  {
    const std::lock_guard lock(mutex_);
    if (!awaited_.empty()) {
      parked_.emplace_back([this, session, work = std::move(work), respond] {
        LockWhenRecorded(session, work, respond);
      });
      return;
    }
  }
  LockWhenRecorded(session, std::move(work), respond);
}

void LockService::LockWhenRecorded(uint64_t session, Work work, const Respond& respond) {
  {
    std::unique_lock lock(mutex_);
    if (recorded_.contains(session)) {
      lock.unlock();
      return work();
    }
    std::vector<Recording>& waiting = recording_[session];
    waiting.push_back({std::move(work), respond});
    if (waiting.size() > 1) return;
  }
  names_.SetLockHolder(session, true,
                       [this, session](const Status& status) { Recorded(session, status); });
}

void LockService::Recorded(uint64_t session, const Status& status) {
  std::vector<Recording> waiting;
  bool lives = false;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::move(recording_[session]);
    recording_.erase(session);
    lives = callbacks_.lives(session);
    if (status.ok() && lives) recorded_.insert(session);
  }
  if (status.ok() && !lives) return names_.SetLockHolder(session, false, [](const Status&) {});
  for (const Recording& recording : waiting) {
    if (status.ok()) {
      recording.work();
    } else {
      recording.respond(status, {});
    }
  }
}

bool LockService::DoubtsLocked(const LockWish& wish, Asked* asked,
                               const std::function<Work()>& again) {
  const auto held = table_.Conflict(wish);
  if (!held.has_value()) return false;
  const auto found = settlers_.find(held->owner.session);
  if (found == settlers_.end() || !asked->insert(found->first).second) return false;
  Settler& settler = found->second;
  settler.doubts.push_back({++settler.asked, clock_.Now() + kPatience, again()});
  return true;
}

void LockService::SetNow(const LockWish& wish, const Respond& respond, Asked asked) {
  LockTable::Told told;
  LockVerdict verdict{};
  bool doubts = false;
  {
    const std::lock_guard lock(mutex_);
    if (!callbacks_.lives(wish.lock.owner.session)) return;
    verdict = table_.Set(wish, &told);
    doubts = verdict == LockVerdict::kBusy && DoubtsLocked(wish, &asked, [&]() -> Work {
               return [this, wish, respond, asked] { SetNow(wish, respond, asked); };
             });
  }
  if (doubts) return callbacks_.ask();
  respond(Status::Ok(), ReplyOf(verdict));
  TellAll(std::move(told));
}

void LockService::Wait(uint64_t session, uint64_t ticket, const Respond& respond) {
  LockTable::Told told;
  {
    const std::lock_guard lock(mutex_);
    table_.Await(
        session, ticket,
        [respond](LockVerdict verdict) { respond(Status::Ok(), ReplyOf(verdict)); }, &told);
  }
  TellAll(std::move(told));
}

void LockService::Cancel(uint64_t session, uint64_t ticket) {
  LockTable::Told told;
  {
    const std::lock_guard lock(mutex_);
    table_.Cancel(session, ticket, &told);
  }
  TellAll(std::move(told));
}

void LockService::Test(uint64_t session, const wire::LockRequest& request, Respond respond) {
  if (!IsValid(request.lock())) return respond(Malformed(), {});
  {
    const std::lock_guard lock(mutex_);
    if (!awaited_.empty()) {
      parked_.emplace_back([this, session, request, respond = std::move(respond)] {
        Test(session, request, respond);
      });
      return;
    }
  }
  TestNow(WishOf(session, request.lock()), respond, {});
}

void LockService::TestNow(const LockWish& wish, const Respond& respond, Asked asked) {
  wire::LockReply reply;
  bool doubts = false;
  {
    const std::lock_guard lock(mutex_);
    doubts = DoubtsLocked(wish, &asked, [&]() -> Work {
      return [this, wish, respond, asked] { TestNow(wish, respond, asked); };
    });
    const auto held = table_.Conflict(wish);
    if (held.has_value()) FillConflict(wish, *held, reply.mutable_conflict());
  }
  if (doubts) return callbacks_.ask();
  respond(Status::Ok(), reply);
}

void LockService::CanSettle(uint64_t session) {
  const std::lock_guard lock(mutex_);
  settlers_[session];
}

uint64_t LockService::AskedOf(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = settlers_.find(session);
  return found == settlers_.end() ? 0 : found->second.asked;
}

void LockService::Settled(uint64_t session, uint64_t seq) {
  std::vector<Work> again;
  {
    const std::lock_guard lock(mutex_);
    const auto found = settlers_.find(session);
    if (found == settlers_.end()) return;
    std::deque<Doubt>& doubts = found->second.doubts;
    for (; !doubts.empty() && doubts.front().seq <= seq; doubts.pop_front()) {
      again.push_back(std::move(doubts.front().again));
    }
  }
  for (const Work& work : again) work();
}

void LockService::Tick() {
  std::vector<Work> again;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    for (auto& [session, settler] : settlers_) {
      std::deque<Doubt>& doubts = settler.doubts;
      for (; !doubts.empty() && doubts.front().until <= now; doubts.pop_front()) {
        again.push_back(std::move(doubts.front().again));
      }
    }
  }
  for (const Work& work : again) work();
}

std::vector<wire::FileLock> LockService::Reclaim(uint64_t session,
                                                 const std::vector<wire::FileLock>& locks,
                                                 bool resumes) {
  std::vector<wire::FileLock> lost;
  LockTable::Told others;
  {
    const std::lock_guard lock(mutex_);
    const bool awaited = awaited_.erase(session) > 0;
    const bool in_time = awaited || (resumes && recorded_.contains(session));
    for (const wire::FileLock& told : locks) {
      if (!IsValid(told) || told.type() == wire::FileLock::NONE) {
        lost.push_back(told);
        continue;
      }
      const LockWish wish = WishOf(session, told);
      // What it holds may be newer than what it tells, and more.
      for (const FileLock& missing : table_.Missing(wish)) {
        LockWish part = wish;
        part.lock = missing;
        if (in_time) (void)table_.Set(part, &others);
      }
      for (const FileLock& missing : table_.Missing(wish)) {
        wire::FileLock& part = lost.emplace_back(told);
        part.set_first(missing.first);
        part.set_last(missing.last);
      }
    }
  }
  TellAll(std::move(others));
  RunParked();
  return lost;
}

void LockService::EndSession(uint64_t session) {
  LockTable::Told told;
  bool recorded = false;
  std::deque<Doubt> doubts;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = settlers_.find(session); found != settlers_.end()) {
      doubts = std::move(found->second.doubts);
      settlers_.erase(found);
    }
    awaited_.erase(session);
    recorded = recorded_.erase(session) > 0;
    table_.DropSession(session, &told);
  }
  TellAll(std::move(told));
  for (const Doubt& doubt : doubts) doubt.again();
  if (recorded) names_.SetLockHolder(session, false, [](const Status&) {});
  RunParked();
}

void LockService::EndGrace() {
  std::set<uint64_t> silent;
  {
    const std::lock_guard lock(mutex_);
    silent = awaited_;
  }
  for (const uint64_t session : silent) EndSession(session);
}

void LockService::RunParked() {
  std::vector<Work> parked;
  {
    const std::lock_guard lock(mutex_);
    if (!awaited_.empty()) return;
    parked = std::exchange(parked_, {});
  }
  for (const Work& work : parked) work();
}

}  // namespace weir::mds
