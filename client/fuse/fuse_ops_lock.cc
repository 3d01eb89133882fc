// Advisory locks: getlk, setlk, flock. Only for mounts that share: alone, the kernel's own do.
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdint>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

// FUSE's last byte is included, as ours; libfuse turns it into a length, 0 for all the rest.
void SetRange(const struct flock& asked, LockAsk* ask) {
  ask->first = static_cast<uint64_t>(asked.l_start);
  ask->last = asked.l_len == 0 ? FileLock::kLastByte
                               : static_cast<uint64_t>(asked.l_start + (asked.l_len - 1));
}

LockAsk::Type TypeOf(int type) {
  if (type == F_UNLCK) return LockAsk::Type::kNone;
  return type == F_WRLCK ? LockAsk::Type::kWrite : LockAsk::Type::kRead;
}

LockAsk Ask(Filesystem& fs, fuse_ino_t ino, const fuse_file_info& fi) {
  LockAsk ask;
  ask.inode = fs.ToInode(ino);
  ask.handle = fi.fh;
  ask.owner = fi.lock_owner;
  return ask;
}

void Set(Filesystem& fs, const CallPtr& call, const LockAsk& ask, uint64_t ticket) {
  fs.core().locks().Set(ask, ticket, [&fs, call, ask](int error) {
    if (call->ReplyErrno(error) || error != 0 || ask.type == LockAsk::Type::kNone) return;
    // Its process was killed while it waited.
    LockAsk undo = ask;
    undo.type = LockAsk::Type::kNone;
    fs.core().locks().Set(undo, 0, [](int) {});
  });
}

void Start(fuse_req_t req, fuse_ino_t ino, const LockAsk& ask) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const bool sets = ask.type != LockAsk::Type::kNone;
  const HandlePtr handle = fs.core().handles().Find(ask.handle);
  if (sets && handle != nullptr) handle->locked = true;
  const uint64_t ticket = sets ? fs.core().locks().NewTicket() : 0;
  const InodePtr inode = fs.Find(ino);
  if (sets && ask.wait) call->OnInterrupt([&fs, ticket] { fs.core().locks().Cancel(ticket); });
  // Whoever locks next sees what was written under this lock.
  if (ask.type != LockAsk::Type::kWrite && inode->has_unreported()) {
    fs.core().files().Sync(inode, false, [&fs, call, ask, ticket, inode](const Status& status) {
      if (!status.ok()) inode->RememberError(status);
      Set(fs, call, ask, ticket);
    });
  } else {
    Set(fs, call, ask, ticket);
  }
}

void OnSetlk(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, struct flock* lock, int sleep) {
  LockAsk ask = Ask(Filesystem::Of(req), ino, *fi);
  SetRange(*lock, &ask);
  ask.type = TypeOf(lock->l_type);
  ask.pid = static_cast<uint32_t>(lock->l_pid);
  ask.wait = sleep != 0;
  Start(req, ino, ask);
}

void OnFlock(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, int operation) {
  LockAsk ask = Ask(Filesystem::Of(req), ino, *fi);
  ask.flock = true;
  const int kind = operation & ~LOCK_NB;
  if (kind == LOCK_SH) ask.type = LockAsk::Type::kRead;
  if (kind == LOCK_EX) ask.type = LockAsk::Type::kWrite;
  ask.wait = (operation & LOCK_NB) == 0;
  Start(req, ino, ask);
}

void OnGetlk(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, struct flock* lock) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  LockAsk ask = Ask(fs, ino, *fi);
  SetRange(*lock, &ask);
  ask.type = TypeOf(lock->l_type);
  fs.core().locks().Test(ask, [call](const Result<LockAsk>& found) {
    if (!found.ok()) {
      call->Reply(found.status());
      return;
    }
    struct flock shown {};
    shown.l_whence = SEEK_SET;
    shown.l_type = F_UNLCK;
    if (found->type != LockAsk::Type::kNone) {
      shown.l_type = found->type == LockAsk::Type::kWrite ? F_WRLCK : F_RDLCK;
      shown.l_start = static_cast<off_t>(found->first);
      shown.l_len = found->last == FileLock::kLastByte
                        ? 0
                        : static_cast<off_t>(found->last - found->first + 1);
      shown.l_pid = static_cast<pid_t>(found->pid);
    }
    call->ReplyLock(shown);
  });
}

}  // namespace

void AddLockOps(fuse_lowlevel_ops* ops) {
  ops->getlk = OnGetlk;
  ops->setlk = OnSetlk;
  ops->flock = OnFlock;
}

}  // namespace weir::client
