#include "mds/locks/lock_service.h"

#include <utility>

#include "common/base/log.h"
#include "common/wire/mds.pb.h"
#include "mds/ns/namespace_db.h"

namespace weir::mds {
namespace {

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

LockService::LockService(NamespaceDb& names, const std::vector<uint64_t>& holders)
    : names_(names),
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
  Work work = [this, wish, respond] { SetNow(wish, respond); };
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
  {
    const std::lock_guard lock(mutex_);
    waiting = std::move(recording_[session]);
    recording_.erase(session);
    if (status.ok()) recorded_.insert(session);
  }
  for (const Recording& recording : waiting) {
    if (status.ok()) {
      recording.work();
    } else {
      recording.respond(status, {});
    }
  }
}

void LockService::SetNow(const LockWish& wish, const Respond& respond) {
  LockTable::Told told;
  LockVerdict verdict{};
  {
    const std::lock_guard lock(mutex_);
    verdict = table_.Set(wish, &told);
  }
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
  const LockWish wish = WishOf(session, request.lock());
  wire::LockReply reply;
  {
    const std::lock_guard lock(mutex_);
    if (!awaited_.empty()) {
      parked_.emplace_back([this, session, request, respond = std::move(respond)] {
        Test(session, request, respond);
      });
      return;
    }
    const auto held = table_.Conflict(wish);
    if (held.has_value()) FillConflict(wish, *held, reply.mutable_conflict());
  }
  respond(Status::Ok(), reply);
}

std::vector<uint64_t> LockService::Reclaim(uint64_t session,
                                           const std::vector<wire::FileLock>& locks, bool resumes) {
  std::set<uint64_t> lost;
  {
    const std::lock_guard lock(mutex_);
    const bool awaited = awaited_.erase(session) > 0;
    const bool in_time = awaited || (resumes && recorded_.contains(session));
    for (const wire::FileLock& held : locks) {
      LockTable::Told told;  // nobody waits yet
      const bool regained = in_time && IsValid(held) && held.type() != wire::FileLock::NONE &&
                            table_.Set(WishOf(session, held), &told) == LockVerdict::kGranted;
      if (!regained) lost.insert(held.inode());
    }
  }
  if (!lost.empty()) {
    WEIR_LOG_WARN("session {:x} comes back too late for its locks on {} files", session,
                  lost.size());
  }
  RunParked();
  return {lost.begin(), lost.end()};
}

void LockService::EndSession(uint64_t session) {
  LockTable::Told told;
  bool recorded = false;
  {
    const std::lock_guard lock(mutex_);
    awaited_.erase(session);
    recorded = recorded_.erase(session) > 0;
    table_.DropSession(session, &told);
  }
  TellAll(std::move(told));
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
