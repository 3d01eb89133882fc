// Opens: open, create, flush, release, fsync.
#include <fcntl.h>

#include <cerrno>

#include "client/fuse/filesystem.h"
#include "client/fuse/newer_requests.h"
#include "client/fuse/process.h"
#include "client/takeover/takeover_log.h"

namespace weir::client {
namespace {

// Of a file up to this size that was not read since its last change, an open for reading has the
// kernel forget all pages; of a larger one the first and the last, as reading it all again costs
// more than an access time is worth.
constexpr uint64_t kReadAgain = 128 << 10;

// Who opens, and how.
struct Opening {
  OpenerPtr opener;
  int flags = 0;
  uint64_t asked = 0;
  uint64_t request = 0;  // the kernel's number of it
};

HandlePtr MakeHandle(InodePtr inode, const Opening& opening) {
  return std::make_shared<Handle>(std::move(inode), opening.opener, opening.flags);
}

void Drop(Filesystem& fs, uint64_t number) {
  const HandlePtr handle = fs.core().handles().Remove(number);
  if (handle == nullptr) return;
  if (handle->MayWrite()) handle->inode->RemoveWriter();
  fs.core().locks().Released(handle->inode->id(), number);
  if (TakeoverLog* const takeover = fs.core().takeover()) {
    takeover->Closed(number, handle->inode->id());
  }
  // What is not stored yet keeps it open at the MDS, also without a name.
  fs.core().files().WhenStored(handle->inode->id(), [&core = fs.core(), id = handle->inode->id()] {
    core.open_files().Close(id);
  });
}

// For a successor. `request`: the kernel's number of what opened it, which may come again.
void NoteOpened(Filesystem& fs, uint64_t request, uint64_t number, const Handle& handle) {
  TakeoverLog* const takeover = fs.core().takeover();
  if (takeover == nullptr) return;
  const Opener& opener = *handle.opener;
  OpenedFile file;
  file.number = number;
  file.inode = handle.inode->id();
  file.request = request;
  file.flags = handle.flags;
  file.uid = opener.uid();
  file.gid = opener.gid();
  file.groups.assign(opener.groups().begin(), opener.groups().end());
  file.pid = opener.pid();
  file.exe = opener.exe();
  file.cgroup = opener.cgroup();
  takeover->Opened(std::move(file));
  if (const uint64_t untold = takeover->HandleOf(request); untold != 0) Drop(fs, untold);
}

// Whether the kernel is to ask for what it has already: a read through the handle would move the
// access time.
bool MustSeeReads(Filesystem& fs, const Handle& handle) {
  constexpr int kSeesNone = O_NOATIME | O_TRUNC | O_DIRECT;
  const bool reads = (handle.flags & O_ACCMODE) != O_WRONLY && (handle.flags & kSeesNone) == 0;
  return reads && fs.core().access_times().FileReadCounts(*handle.inode);
}

// Registers the handle and says how the kernel shall treat it.
OpenReply Admit(Filesystem& fs, const Opening& opening, const HandlePtr& handle, uint64_t version) {
  OpenReply reply;
  const bool unchanged = handle->inode->SeenAtOpen(version);
  const bool must_see = MustSeeReads(fs, *handle);
  const bool small = handle->inode->size() <= kReadAgain;
  reply.keep_cache = (fs.options().exclusive || unchanged) && !(must_see && small);
  reply.drop_ends = must_see && reply.keep_cache && !handle->inode->has_writers();
  // An append through pages would come in two requests when it begins in a page that the kernel has
  // only a part of, and another mount's could come between them.
  const bool appends = handle->MayWrite() && (handle->flags & O_APPEND) != 0;
  // A kernel that writes back knows times, size and rights of what passes its pages only if it does
  // that by itself.
  reply.direct =
      (handle->direct && !fs.options().writeback_cache) || (appends && !fs.options().exclusive);
  if (handle->MayWrite()) handle->inode->AddWriter();
  reply.handle = fs.core().handles().Add(handle);
  NoteOpened(fs, opening.request, reply.handle, *handle);
  return reply;
}

// Whether that answer to an open says that it is to be asked for again, by `again`, when this mount
// has heard that it was evicted. Else `failed`.
bool AskAgainWhenHeard(Filesystem& fs, const Status& status, uint64_t epoch,
                       const std::function<void()>& again,
                       const std::function<void(const Status&)>& failed) {
  if (status.code() != ErrorCode::kStaleEpoch) return false;
  fs.core().AwaitEviction(epoch, fs.GiveUpAt(), [again, failed](const Status& heard) {
    heard.ok() ? again() : failed(heard);
  });
  return true;
}

// Counted as open already.
void AskOpen(Filesystem& fs, const CallPtr& call, const InodePtr& inode, int flags) {
  wire::OpenRequest request;
  request.set_epoch(fs.core().map_epoch());
  fs.FillCaller(*call, inode.get(), request.mutable_caller());
  request.set_inode(inode->id().value);
  request.set_flags(static_cast<uint32_t>(flags));
  const Opening opening{fs.OpenerOf(*call), flags, fs.core().leases().Asked(), call->number()};
  auto failed = [&fs, call, inode](const Status& status) {
    fs.core().open_files().Close(inode->id());
    call->Reply(status);
  };
  auto answer = [&fs, call, inode, opening, failed,
                 epoch = request.epoch()](Result<wire::EntryReply> reply) {
    if (!reply.ok()) {
      const auto again = [&fs, call, inode, flags = opening.flags] {
        AskOpen(fs, call, inode, flags);
      };
      if (!AskAgainWhenHeard(fs, reply.status(), epoch, again, failed)) failed(reply.status());
      return;
    }
    fs.Learn(inode, *reply, opening.asked);
    const OpenReply open = Admit(fs, opening, MakeHandle(inode, opening), reply->attr().version());
    const auto tell = [&fs, call, open] {
      const std::string bytes = EncodeOpen(open);
      if (!call->ReplyRaw(bytes.data(), bytes.size())) Drop(fs, open.handle);
    };
    if (!open.drop_ends) return tell();
    fs.kernel_cache().DropEnds(fs.ToNumber(inode->id()), inode->size(), tell);
  };
  fs.core().files().TellHeld(inode, [&fs, request, answer] {
    fs.CallAs<wire::EntryReply>(wire::MDS_OPEN, request, false, answer);
  });
}

void OnOpen(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const InodePtr inode = fs.Find(ino);
  // Counted first: what was closed last is not released meanwhile.
  fs.core().open_files().Open(
      inode->id(), [&fs, call, inode, flags = fi->flags] { AskOpen(fs, call, inode, flags); });
}

void AnswerCreate(Filesystem& fs, const CallPtr& call, const Opening& opening,
                  const InodePtr& inode, uint64_t version, const fuse_entry_param& entry) {
  const OpenReply open = Admit(fs, opening, MakeHandle(inode, opening), version);
  const std::string bytes = EncodeCreate(entry, open);
  if (call->ReplyRaw(bytes.data(), bytes.size())) return;
  Drop(fs, open.handle);
  fs.UndoEntry(entry);
}

// The kernel takes it for a new file, which it does not truncate.
void TruncateFound(Filesystem& fs, const CallPtr& call, const Opening& opening,
                   const InodePtr& inode, const fuse_entry_param& entry) {
  wire::SetAttrRequest request;
  fs.FillCaller(*call, inode.get(), request.mutable_caller());
  request.set_inode(inode->id().value);
  request.set_size(0);
  request.set_has_handle(true);  // CREATE has checked already
  request.set_epoch(fs.core().map_epoch());
  request.set_known_size(inode->size());
  fs.SetAttributes(call, inode, request,
                   [&fs, call, opening, inode, entry](const Result<FileAttr>& cut) {
                     if (cut.ok()) {
                       fuse_entry_param now = entry;
                       now.attr = ToStat(*cut);
                       now.attr_timeout = 0;
                       return AnswerCreate(fs, call, opening, inode, cut->version, now);
                     }
                     fs.core().open_files().Close(inode->id());
                     fs.UndoEntry(entry);
                     const bool evicted = cut.code() == ErrorCode::kStaleEpoch;
                     call->Reply(evicted ? LostError() : cut.status());
                   });
}

void FinishCreate(Filesystem& fs, const CallPtr& call, const Opening& opening,
                  const wire::EntryReply& reply, const fuse_entry_param& entry) {
  const InodePtr inode = fs.core().inodes().Find(InodeId(reply.attr().inode()));
  const bool found = !reply.made() && !IsTmpfile(opening.flags);
  if (found && (opening.flags & O_TRUNC) != 0) {
    return TruncateFound(fs, call, opening, inode, entry);
  }
  AnswerCreate(fs, call, opening, inode, reply.attr().version(), entry);
}

// The rare create that found a file which this mount was giving back at that moment. `failed`: runs
// in its place.
void OpenAgain(Filesystem& fs, const CallPtr& call, const Opening& opening, InodeId id,
               uint64_t epoch, const std::function<void(const Status&)>& failed) {
  wire::OpenRequest request;
  request.set_epoch(epoch);
  request.set_inode(id.value);  // as root: CREATE has checked already
  request.set_flags(static_cast<uint32_t>(opening.flags));
  auto answer = [&fs, call, opening, id, failed](Result<wire::EntryReply> reply) {
    fs.core().open_files().Close(id);  // Opened has counted it
    if (!reply.ok()) {
      fs.core().open_files().Close(id);
      return failed(reply.status());
    }
    FinishCreate(fs, call, opening, *reply, fs.LearnEntry(*reply, opening.asked));
  };
  fs.core().open_files().Open(id, [&fs, request, answer] {
    fs.mds().Call<wire::EntryReply>(wire::MDS_OPEN, request, false, answer);
  });
}

// What a new file is to be, besides who asks.
struct Creation {
  fuse_ino_t parent = 0;
  std::string name;
  mode_t mode = 0;
  int flags = 0;
};

wire::CreateRequest ToRequest(Filesystem& fs, const Call& call, const Creation& file) {
  wire::CreateRequest request;
  request.set_epoch(fs.core().map_epoch());
  fs.FillCaller(call, file.parent, request.mutable_caller());
  request.set_parent(fs.ToInode(file.parent).value);
  request.set_name(file.name);
  request.set_mode((file.mode & 07777) | S_IFREG);
  if ((file.mode & S_ISGID) != 0) fs.LookAgain(request.mutable_caller());
  request.set_umask(call.context().umask);
  request.set_exclusive((file.flags & O_EXCL) != 0);
  request.set_open_flags(static_cast<uint32_t>(file.flags));
  return request;
}

void AskCreate(Filesystem& fs, const CallPtr& call, const Creation& file) {
  const wire::CreateRequest request = ToRequest(fs, *call, file);
  const Opening opening{fs.OpenerOf(*call), file.flags, fs.core().leases().Asked(), call->number()};
  const uint64_t begun = fs.core().open_files().BeginCreate();
  const bool unnamed = IsTmpfile(file.flags);
  Filesystem::Naming naming;
  std::shared_ptr<DirCache::Changing> changing;
  if (!unnamed) {
    naming = fs.Ask(file.parent, file.name);
    changing = fs.core().directories().BeginChange(
        {{DirCache::Kind::kAdd, InodeId(request.parent()), file.name}});
  }
  auto answer = [&fs, call, begun, changing, opening, naming, file,
                 epoch = request.epoch()](Result<wire::EntryReply> reply) {
    const InodeId id(reply.ok() ? reply->attr().inode() : 0);
    const bool settled = fs.core().open_files().Opened(id, begun);
    if (changing != nullptr) fs.core().NamesChanged(changing.get(), reply);
    const auto failed = [&fs, call, file, epoch](const Status& status) {
      const auto again = [&fs, call, file] { AskCreate(fs, call, file); };
      const auto refused = [call](const Status& why) { call->Reply(why); };
      if (!AskAgainWhenHeard(fs, status, epoch, again, refused)) refused(status);
    };
    if (!reply.ok()) {
      failed(reply.status());
    } else if (settled) {
      const auto entry = naming.directory == nullptr ? fs.LearnEntry(*reply, opening.asked)
                                                     : fs.LearnName(naming, *reply);
      if (reply->made()) {
        const InodePtr made = fs.core().inodes().Find(id);
        made->Made({fs.ToInode(file.parent), file.name});
        made->SetBlank();
      }
      FinishCreate(fs, call, opening, *reply, entry);
    } else {
      OpenAgain(fs, call, opening, id, epoch, failed);
    }
  };
  fs.CallOnce(call, unnamed ? wire::MDS_TMPFILE : wire::MDS_CREATE, request,
              MdsClient::Decoded<wire::EntryReply>(std::move(answer)));
}

void OnCreate(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  AskCreate(fs, fs.Begin(req), {parent, name, mode, fi->flags});
}

// Whether something is gone that a predecessor of this process took from it; says so once.
Status TakeLoss(Filesystem& fs, Handle& handle, uint64_t number) {
  if (!handle.lost.exchange(false)) return Status::Ok();
  fs.core().takeover()->Told(number);
  return {ErrorCode::kIo, "weirfs ended before what was written here was stored"};
}

void ReplySynced(const CallPtr& call, const InodePtr& inode, const Status& status) {
  // Nobody heard of it, as the process was killed: the next fsync or close tells.
  if (!call->Reply(status) && !status.ok()) inode->NotHeard(status);
}

// Each close(2) asks for it, also of a descriptor that was inherited or duplicated.
void OnFlush(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  call->SetFlush();
  const InodePtr& inode = handle->inode;
  FileIo& files = fs.core().files();
  if (fs.options().exclusive && fs.options().writeback_cache) {
    // Who has changed the pages that the kernel has just written, and locks, are its own affair.
    return files.Close(handle,
                       [call, inode](const Status& status) { ReplySynced(call, inode, status); });
  }
  call->Hold(fs.core().locks().Ending());
  const Handle::AtClose todo = handle->CloseBy(call->context().pid, IsOtherLivingProcess);
  // Whoever gets the closer's locks next sees what was written under them.
  const bool unlocks = fs.core().locks().HasLocks(inode->id(), fi->lock_owner);
  const bool stores = unlocks || todo == Handle::AtClose::kStore;
  const bool hears = stores || todo == Handle::AtClose::kTell;
  auto closed = [&fs, call, inode, owner = fi->lock_owner,
                 loss =
                     hears ? TakeLoss(fs, *handle, fi->fh) : Status::Ok()](const Status& stored) {
    const Status& status = stored.ok() ? loss : stored;
    fs.core().locks().Closed(inode->id(), owner,
                             [call, inode, status] { ReplySynced(call, inode, status); });
  };
  if (stores) return files.Close(handle, closed);
  auto unchanged = [&files, handle, hears, closed] {
    closed(hears ? files.ToldAtClose(*handle) : Status::Ok());
  };
  if (!handle->MayWrite()) return unchanged();
  files.TellHeld(inode, unchanged);  // a mode, say, of which only the MDS needs to hear
}

void OnRelease(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  Drop(fs, fi->fh);
  fuse_reply_err(req, 0);
}

void OnFsync(fuse_req_t req, fuse_ino_t /*ino*/, int datasync, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  fs.core().files().Fsync(
      handle, datasync != 0,
      [&fs, call, handle, loss = TakeLoss(fs, *handle, fi->fh)](const Status& status) {
        // Who looks next finds the space that the file takes.
        fs.kernel_attributes().WhenTold([call, handle, status, loss] {
          ReplySynced(call, handle->inode, status.ok() ? loss : status);
        });
      });
}

}  // namespace

void AddOpenOps(fuse_lowlevel_ops* ops) {
  ops->open = OnOpen;
  ops->create = OnCreate;
  ops->flush = OnFlush;
  ops->release = OnRelease;
  ops->fsync = OnFsync;
}

}  // namespace weir::client
