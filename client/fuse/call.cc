#include "client/fuse/call.h"

#include <linux/fuse.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "client/fuse/process.h"
#include "client/fuse/request_handler.h"
#include "client/vfs/errno_map.h"

namespace weir::client {
namespace {

bool IsGone(pid_t pid, bool flush, bool interrupted) {
  if (!flush && !interrupted) return false;
  return IsBeingKilled(pid) || (flush && IsEndedBySignal(pid));
}

constexpr uint32_t kSmallRead = 32 << 10;

}  // namespace

// Writes and large reads are the disk's business, a lock's owner may take all day.
Call::Steps Call::StepsOfThisRequest() {
  switch (RequestOpcode()) {
    case FUSE_READ:
      return RequestReadBytes() <= kSmallRead ? Steps::kMatterIfQuick : Steps::kDoNotMatter;
    case FUSE_WRITE:
    case FUSE_SETLKW:
      return Steps::kDoNotMatter;
    default:
      return Steps::kMatter;
  }
}

Call::Call(Calls& calls, fuse_req_t req, AwakeProcessors* awake)
    : calls_(calls),
      awake_(awake),
      steps_(awake == nullptr ? Steps::kDoNotMatter : StepsOfThisRequest()),
      began_(steps_ == Steps::kMatterIfQuick ? awake->clock().Now() : TimePoint{}),
      req_(req),
      context_(*fuse_req_ctx(req)),
      number_(RequestNumber()) {
  if (steps_ == Steps::kMatter) awake_->Began();
}

Call::~Call() {
  ReplyErrno(EIO);  // nobody answered; never leave the kernel waiting
}

bool Call::Claim() {
  if (answered_.exchange(true)) return false;
  TellAwake();
  calls_.Remove(this);
  return true;
}

void Call::TellAwake() {
  if (steps_ == Steps::kMatter) awake_->Ended();
  if (steps_ == Steps::kMatterIfQuick) awake_->Took(awake_->clock().Now() - began_);
}

bool Call::ReplyErrno(int error) {
  return Claim() && fuse_reply_err(req_, error) == 0;
}

bool Call::Reply(const Status& status) {
  return ReplyErrno(KernelErrno(status));
}

bool Call::ReplyEntry(const fuse_entry_param& entry) {
  return Claim() && fuse_reply_entry(req_, &entry) == 0;
}

bool Call::ReplyAttr(const struct stat& attr, double timeout) {
  return Claim() && fuse_reply_attr(req_, &attr, timeout) == 0;
}

bool Call::ReplyRaw(const void* data, size_t size) {
  return Claim() && fuse_reply_buf(req_, static_cast<const char*>(data), size) == 0;
}

bool Call::ReplySegments(const Segments& segments) {
  if (segments.size() == 1) return ReplyRaw(segments[0].data(), segments[0].size());
  if (!Claim()) return false;
  std::vector<iovec> parts;
  parts.reserve(segments.size());
  for (const Buffer& segment : segments) parts.push_back({segment.data(), segment.size()});
  return fuse_reply_iov(req_, parts.data(), static_cast<int>(parts.size())) == 0;
}

bool Call::ReplyWrite(size_t size) {
  return Claim() && fuse_reply_write(req_, size) == 0;
}

bool Call::ReplyOffset(uint64_t offset) {
  return Claim() && fuse_reply_lseek(req_, static_cast<off_t>(offset)) == 0;
}

bool Call::ReplyStatfs(const struct statvfs& stat) {
  return Claim() && fuse_reply_statfs(req_, &stat) == 0;
}

bool Call::ReplyReadlink(const std::string& target) {
  return Claim() && fuse_reply_readlink(req_, target.c_str()) == 0;
}

bool Call::ReplyXattrSize(size_t size) {
  return Claim() && fuse_reply_xattr(req_, size) == 0;
}

bool Call::ReplyLock(const struct flock& lock) {
  return Claim() && fuse_reply_lock(req_, &lock) == 0;
}

void Call::OnInterrupt(std::function<void()> then) {
  {
    const std::lock_guard lock(calls_.mutex_);
    if (!interrupted_) {
      on_interrupt_ = std::move(then);
      return;
    }
  }
  then();
}

CallPtr Calls::Begin(fuse_req_t req) {
  auto call = std::make_shared<Call>(*this, req, awake_);
  std::lock_guard lock(mutex_);
  call->place_ = open_.insert(open_.end(), call.get());
  call->interrupted_ = early_.Take(call->number_);
  return call;
}

void Calls::Remove(Call* call) {
  std::lock_guard lock(mutex_);
  open_.erase(call->place_);
}

void Calls::Interrupt(uint64_t number) {
  std::function<void()> then;
  {
    std::lock_guard lock(mutex_);
    const auto it = std::find_if(open_.begin(), open_.end(),
                                 [number](const Call* call) { return call->number_ == number; });
    if (it == open_.end()) return early_.Remember(number);
    (*it)->interrupted_ = true;
    then = std::exchange((*it)->on_interrupt_, nullptr);
  }
  if (then) then();
}

// Those that somebody could take back.
void Calls::InterruptSignalled() {
  std::vector<std::function<void()>> taken_back;
  {
    const std::lock_guard lock(mutex_);
    for (Call* call : open_) {
      if (!call->seen_ || !call->on_interrupt_ || !IsSignalled(call->context_.pid)) continue;
      call->interrupted_ = true;
      taken_back.push_back(std::exchange(call->on_interrupt_, nullptr));
    }
  }
  for (const auto& take_back : taken_back) take_back();
}

bool Calls::AnswerKilled() {
  if (mistrusts_) InterruptSignalled();
  // Whoever is claimed here was not answered yet, and nobody else will touch it again.
  std::vector<fuse_req_t> killed;
  {
    std::lock_guard lock(mutex_);
    for (auto it = open_.begin(); it != open_.end();) {
      Call* call = *it;
      const fuse_req_t req = call->req_;
      const bool gone = std::exchange(call->seen_, true) &&
                        IsGone(call->context_.pid, call->flush_, call->interrupted_ || mistrusts_);
      if (gone) call->abandoned_ = true;
      // Claimed, the call may be gone: its owner lets go of it without our lock.
      const bool abandon = gone && !call->answered_.exchange(true);
      if (abandon) call->TellAwake();
      if (abandon) killed.push_back(req);
      it = abandon ? open_.erase(it) : std::next(it);
    }
  }
  for (fuse_req_t req : killed) fuse_reply_err(req, EINTR);
  return !killed.empty();
}

size_t Calls::outstanding() const {
  std::lock_guard lock(mutex_);
  return open_.size();
}

}  // namespace weir::client
