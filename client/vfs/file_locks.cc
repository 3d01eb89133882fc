#include "client/vfs/file_locks.h"

#include <cerrno>
#include <utility>

#include "client/vfs/errno_map.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

wire::FileLock ToWire(const LockAsk& ask) {
  wire::FileLock lock;
  lock.set_inode(ask.inode.value);
  lock.set_flock(ask.flock);
  lock.set_type(static_cast<wire::FileLock::Type>(ask.type));
  lock.set_first(ask.first);
  lock.set_last(ask.last);
  lock.set_owner(ask.owner);
  lock.set_pid(ask.pid);
  return lock;
}

FileLock ToLock(const LockAsk& ask) {
  return {.owner = {0, ask.owner},
          .first = ask.first,
          .last = ask.last,
          .write = ask.type == LockAsk::Type::kWrite,
          .pid = ask.pid};
}

}  // namespace

LockAsk AskFor(InodeId inode, bool flock, const FileLock& held) {
  LockAsk ask;
  ask.inode = inode;
  ask.flock = flock;
  ask.type = held.write ? LockAsk::Type::kWrite : LockAsk::Type::kRead;
  ask.first = held.first;
  ask.last = held.last;
  ask.owner = held.owner.id;
  ask.pid = held.pid;
  return ask;
}

uint64_t FileLocks::NewTicket() {
  const std::lock_guard lock(mutex_);
  pending_[++last_ticket_];
  return last_ticket_;
}

void FileLocks::Set(const LockAsk& ask, uint64_t ticket, Done done) {
  if (ask.type == LockAsk::Type::kNone) return Unlock(ask, std::move(done));
  {
    const std::lock_guard lock(mutex_);
    owners_of_[ask.handle].emplace(ask.owner, ask.flock);
    Pending& pending = pending_[ticket];  // maybe cancelled already
    pending.ask = ask;
    pending.done = std::move(done);
  }
  SendLock(ticket, ask);
}

void FileLocks::SendLock(uint64_t ticket, const LockAsk& ask) {
  wire::LockRequest request;
  *request.mutable_lock() = ToWire(ask);
  request.set_wait(ask.wait);
  request.set_ticket(ticket);
  send_(wire::MDS_LOCK, request, false,
        [this, ticket](const Result<wire::LockReply>& reply) { OnReply(ticket, reply); });
}

void FileLocks::SendWait(uint64_t ticket) {
  wire::LockTicket request;
  request.set_ticket(ticket);
  send_(wire::MDS_LOCK_WAIT, request, true,
        [this, ticket](const Result<wire::LockReply>& reply) { OnReply(ticket, reply); });
}

void FileLocks::SendCancel(uint64_t ticket) {
  wire::LockTicket request;
  request.set_ticket(ticket);
  send_(wire::MDS_LOCK_CANCEL, request, true, [](const Result<wire::LockReply>&) {});
}

void FileLocks::OnReply(uint64_t ticket, const Result<wire::LockReply>& reply) {
  if (!reply.ok()) return Finish(ticket, KernelErrno(reply.status()));
  LockAsk ask;
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return;
    ask = found->second.ask;
    cancelled = found->second.cancelled;
  }
  switch (reply->verdict()) {
    case wire::LockReply::GRANTED:
      return Finish(ticket, 0);
    case wire::LockReply::BUSY:
      return Finish(ticket, EAGAIN);
    case wire::LockReply::DEADLOCK:
      return Finish(ticket, EDEADLK);
    case wire::LockReply::WAITING:
      if (cancelled) SendCancel(ticket);  // the first may have come before the lock
      return SendWait(ticket);
    case wire::LockReply::UNKNOWN:  // the MDS restarted, or its answer was lost
      if (!cancelled) return SendLock(ticket, ask);
      return Finish(ticket, EINTR);
    default:
      return Finish(ticket, EINTR);
  }
}

void FileLocks::Finish(uint64_t ticket, int error) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return;
    const LockAsk& ask = found->second.ask;
    if (error == 0) {
      files_[ask.inode].Of(ask.flock).Set(ToLock(ask));
      granted_[ask.inode].Of(ask.flock).Set(ToLock(ask));
    }
    if (error == 0 && note_ != nullptr) note_(ask);
    done = std::move(found->second.done);
    pending_.erase(found);
  }
  done(error);
}

void FileLocks::Cancel(uint64_t ticket) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return;
    found->second.cancelled = true;
    if (!found->second.ask.wait) return;
  }
  SendCancel(ticket);
}

void FileLocks::ClearLocked(const LockAsk& ask) {
  for (auto* files : {&files_, &granted_}) {
    const auto found = files->find(ask.inode);
    if (found == files->end()) continue;
    found->second.Of(ask.flock).Clear({0, ask.owner}, ask.first, ask.last);
    if (found->second.ranges.empty() && found->second.whole.empty()) files->erase(found);
  }
}

void FileLocks::Unlock(const LockAsk& ask, Done done) {
  {
    const std::lock_guard lock(mutex_);
    ClearLocked(ask);
  }
  wire::LockRequest request;
  *request.mutable_lock() = ToWire(ask);
  send_(wire::MDS_LOCK, request, false,
        [this, ask, done = std::move(done)](const Result<wire::LockReply>& reply) {
          if (reply.ok() && note_ != nullptr) note_(ask);
          done(reply.ok() ? 0 : KernelErrno(reply.status()));
        });
}

void FileLocks::Restore(const std::vector<LockAsk>& held) {
  const std::lock_guard lock(mutex_);
  for (const LockAsk& ask : held) {
    files_[ask.inode].Of(ask.flock).Set(ToLock(ask));
    owners_of_[ask.handle].emplace(ask.owner, ask.flock);
  }
}

void FileLocks::Test(const LockAsk& ask, std::function<void(Result<LockAsk>)> done) {
  wire::LockRequest request;
  *request.mutable_lock() = ToWire(ask);
  send_(wire::MDS_LOCK_TEST, request, true,
        [ask, done = std::move(done)](const Result<wire::LockReply>& reply) {
          if (!reply.ok()) return done(reply.status());
          LockAsk found = ask;
          found.type = LockAsk::Type::kNone;
          if (reply->has_conflict()) {
            const wire::FileLock& held = reply->conflict();
            found.type =
                held.type() == wire::FileLock::WRITE ? LockAsk::Type::kWrite : LockAsk::Type::kRead;
            found.first = held.first();
            found.last = held.last();
            found.pid = held.pid();
          }
          done(found);
        });
}

void FileLocks::DropOwner(InodeId inode, uint64_t owner, bool flock, Done done) {
  LockAsk all;
  all.inode = inode;
  all.flock = flock;
  all.owner = owner;
  Unlock(all, std::move(done));
}

bool FileLocks::HasLocks(InodeId inode, uint64_t owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(inode);
  return found != files_.end() && found->second.ranges.Holds({0, owner});
}

void FileLocks::Closed(InodeId inode, uint64_t owner, const std::function<void()>& done) {
  if (!HasLocks(inode, owner)) return done();
  DropOwner(inode, owner, false, [done](int) { done(); });
}

void FileLocks::Released(InodeId inode, uint64_t handle) {
  std::vector<std::pair<uint64_t, bool>> held;
  {
    const std::lock_guard lock(mutex_);
    const auto owners = owners_of_.find(handle);
    if (owners == owners_of_.end()) return;
    const auto file = files_.find(inode);
    for (const auto& [owner, flock] : owners->second) {
      if (file != files_.end() && file->second.Of(flock).Holds({0, owner})) {
        held.emplace_back(owner, flock);
      }
    }
    owners_of_.erase(owners);
  }
  for (const auto& [owner, flock] : held) {
    DropOwner(inode, owner, flock, [ending = Ending()](int) {});
  }
}

std::shared_ptr<void> FileLocks::Ending() const {
  const std::lock_guard lock(mutex_);
  return gate_;
}

void FileLocks::WhenEnded(std::function<void()> then) {
  std::shared_ptr<Gate> passed;
  {
    const std::lock_guard lock(mutex_);
    gate_->open = std::move(then);
    gate_->next = std::make_shared<Gate>();
    passed = std::exchange(gate_, gate_->next);
  }
  passed = nullptr;  // which may open it, without the lock
}

bool FileLocks::Any() const {
  const std::lock_guard lock(mutex_);
  return !files_.empty();
}

std::vector<wire::FileLock> FileLocks::Held() const {
  const std::lock_guard lock(mutex_);
  return HeldLocked();
}

std::vector<wire::FileLock> FileLocks::ToTell() {
  const std::lock_guard lock(mutex_);
  granted_.clear();
  return HeldLocked();
}

std::vector<wire::FileLock> FileLocks::HeldLocked() const {
  std::vector<wire::FileLock> all;
  for (const auto& [inode, file] : files_) {
    for (const bool flock : {false, true}) {
      for (const FileLock& held : (flock ? file.whole : file.ranges).All()) {
        all.push_back(ToWire(AskFor(inode, flock, held)));
      }
    }
  }
  return all;
}

std::vector<uint64_t> FileLocks::Lost(const wire::FileLock& told) {
  LockAsk gone;
  gone.inode = InodeId(told.inode());
  gone.flock = told.flock();
  gone.first = told.first();
  gone.last = told.last();
  gone.owner = told.owner();
  std::vector<uint64_t> handles;
  const std::lock_guard lock(mutex_);
  const auto file = files_.find(gone.inode);
  if (file == files_.end() || !file->second.Of(gone.flock).Holds({0, gone.owner})) return handles;
  for (const auto& [handle, owners] : owners_of_) {
    if (owners.contains({gone.owner, gone.flock})) handles.push_back(handle);
  }
  std::vector<FileLock> parts = {ToLock(gone)};
  if (const auto granted = granted_.find(gone.inode); granted != granted_.end()) {
    parts = granted->second.Of(gone.flock).Unlocked(parts.front());
  }
  for (const FileLock& part : parts) {
    gone.first = part.first;
    gone.last = part.last;
    ClearLocked(gone);
    if (note_ != nullptr) note_(gone);
  }
  return handles;
}

}  // namespace weir::client
