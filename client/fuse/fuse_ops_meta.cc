// Attributes: getattr, setattr, statfs, readlink, forget.
#include <linux/capability.h>
#include <sys/stat.h>

#include <cerrno>

#include "client/fuse/filesystem.h"
#include "client/fuse/newer_requests.h"

namespace weir::client {
namespace {

constexpr int64_t ToNs(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void OnForget(fuse_req_t req, fuse_ino_t ino, uint64_t count) {
  Filesystem& fs = Filesystem::Of(req);
  fs.Forget(ino, count);
  fuse_reply_none(req);
}

void OnForgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  Filesystem& fs = Filesystem::Of(req);
  for (size_t i = 0; i < count; ++i) {
    fs.Forget(forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(req);
}

// Who asks for attributes, and whether by STATX, which wants more of them.
struct Look {
  CallPtr call;
  bool statx = false;
};

void ReplyAttr(const Look& look, const FileAttr& attr, double keep_seconds) {
  if (!look.statx) {
    look.call->ReplyAttr(ToStat(attr), keep_seconds);
    return;
  }
  const std::string bytes = EncodeStatx(attr, keep_seconds);
  look.call->ReplyRaw(bytes.data(), bytes.size());
}

// The root as it was last seen; a bare directory when it never was.
FileAttr LastKnown(const InodePtr& root) {
  FileAttr attr = root->attr();
  if (attr.mode == 0) {
    attr.mode = S_IFDIR | S_IRWXU;
    attr.nlink = 2;
  }
  attr.inode = root->id();
  return attr;
}

// umount(8) looks at the root and at statfs: neither may hang on an MDS that is lost. A slow one
// is asked again, for what was known earlier may be wrong.
void AskRoot(Filesystem& fs, const Look& look, const InodePtr& root,
             const wire::InodeRequest& request, TimePoint until) {
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_GETATTR, request, true,
      [&fs, look, root, request, until,
       asked = fs.core().leases().Asked()](Result<wire::EntryReply> reply) {
        if (reply.ok()) {
          const FileAttr attr = fs.Learn(root, *reply, asked);
          ReplyAttr(look, attr, fs.KeepSeconds(*root));
        } else if (reply.code() == ErrorCode::kUnreachable) {
          ReplyAttr(look, LastKnown(root), 0);
        } else if (reply.code() == ErrorCode::kTimedOut && fs.core().clock().Now() < until) {
          AskRoot(fs, look, root, request, until);
        } else {
          look.call->Reply(reply.status());
        }
      },
      fs.mds().LossPatience());
}

void OnGetattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const Look look{call, fi != nullptr && fi->fh == kStatxHandle};
  const InodePtr inode = fs.Find(ino);
  if (fs.core().leases().MayAnswer(*inode)) {
    return ReplyAttr(look, inode->attr(), fs.KeepSeconds(*inode));
  }
  wire::InodeRequest request;
  fs.FillCaller(*call, inode.get(), request.mutable_caller());
  request.set_inode(inode->id().value);
  if (ino == FUSE_ROOT_ID) return AskRoot(fs, look, inode, request, fs.GiveUpAt());
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_GETATTR, request, true,
      [&fs, look, inode, asked = fs.core().leases().Asked()](Result<wire::EntryReply> reply) {
        if (reply.ok()) {
          const FileAttr attr = fs.Learn(inode, *reply, asked);
          ReplyAttr(look, attr, fs.KeepSeconds(*inode));
        } else if (reply.code() == ErrorCode::kStale && S_ISDIR(inode->attr().mode)) {
          // Removed, but somebody still has it open or works in it.
          FileAttr gone = inode->attr();
          gone.nlink = 0;
          ReplyAttr(look, gone, 0);
        } else {
          look.call->Reply(reply.status());
        }
      });
}

constexpr int kChanges = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID |
                         FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
                         FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;

// A request that changes nothing is chown(2) that names nobody, or announces that somebody writes.
// What that costs the file goes with the write. While somebody has it open for writing it is taken
// for the former only from an owner, who loses set-id bits either way, unless his writes keep them.
bool IsChownOfNothing(const Inode& inode, const wire::Caller& caller) {
  if (!inode.has_writers()) return true;
  const FileAttr attr = inode.attr();
  if ((attr.mode & (S_ISUID | S_ISGID)) == 0) return false;
  const bool everywhere = caller.uids().empty() && caller.gids().empty() && !caller.unknown();
  const auto can = [&](int capability) {
    return everywhere && (caller.capabilities() >> capability & 1) != 0;
  };
  const bool keeps_them = can(CAP_FSETID) || (caller.uid() == 0 && !caller.limited());
  return !keeps_them && (caller.uid() == attr.uid || can(CAP_FOWNER));
}

// Who may not have files that run as their group is not refused, but loses that bit; and of
// chown(2) the kernel leaves set-id bits to us.
void JudgeSetIds(Filesystem& fs, const Inode& inode, wire::SetAttrRequest* request) {
  if ((request->mode() & S_ISGID) != 0) fs.LookAgain(request->mutable_caller());
  const bool chown = request->has_uid() || request->has_gid() || request->same_owner();
  if (chown && (inode.attr().mode & (S_ISUID | S_ISGID)) != 0) {
    fs.LookAgain(request->mutable_caller());
    fs.LookAtRoot(request->mutable_caller());
  }
  if (request->same_owner()) request->set_same_owner(IsChownOfNothing(inode, request->caller()));
}

wire::SetAttrRequest DecodeSetattr(const struct stat& attr, int to_set, bool has_handle) {
  wire::SetAttrRequest request;
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) request.set_mode(attr.st_mode);
  if ((to_set & FUSE_SET_ATTR_UID) != 0) request.set_uid(attr.st_uid);
  if ((to_set & FUSE_SET_ATTR_GID) != 0) request.set_gid(attr.st_gid);
  if ((to_set & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    request.set_atime_now(true);
  } else if ((to_set & FUSE_SET_ATTR_ATIME) != 0) {
    request.set_atime_ns(ToNs(attr.st_atim));
  }
  if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    request.set_mtime_now(true);
  } else if ((to_set & FUSE_SET_ATTR_MTIME) != 0) {
    request.set_mtime_ns(ToNs(attr.st_mtim));
  }
  if ((to_set & FUSE_SET_ATTR_CTIME) != 0) request.set_ctime_ns(ToNs(attr.st_ctim));
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    request.set_size(static_cast<uint64_t>(attr.st_size));
    request.set_has_handle(has_handle);
  }
  return request;
}

// What of a request this mount may keep to itself for a while: nothing of one that sets a size.
HeldAttributes ToHold(const wire::SetAttrRequest& request, int64_t now_ns) {
  HeldAttributes held;
  if (request.has_size()) return held;
  if (request.has_mode()) held.mode = request.mode() & 07777;
  if (request.has_uid()) held.uid = request.uid();
  if (request.has_gid()) held.gid = request.gid();
  if (request.has_atime_ns()) held.atime_ns = request.atime_ns();
  if (request.has_mtime_ns()) held.mtime_ns = request.mtime_ns();
  if (request.atime_now()) held.atime_ns = now_ns;
  if (request.mtime_now()) held.mtime_ns = now_ns;
  held.ctime_ns = request.has_ctime_ns() ? request.ctime_ns() : now_ns;
  return held;
}

// A kernel that writes back brings a file's times behind its data, before each fsync(2) as well.
bool IsTimesOfWrites(const wire::SetAttrRequest& request) {
  return request.has_mtime_ns() && request.has_ctime_ns() && !request.has_atime_ns() &&
         !request.atime_now() && !request.has_mode() && !request.has_uid() && !request.has_gid() &&
         !request.has_size();
}

bool HoldSetattr(Filesystem& fs, const CallPtr& call, const InodePtr& inode,
                 const wire::SetAttrRequest& request) {
  const HeldAttributes held = ToHold(request, fs.core().files().stamps().Next());
  // Others come from a process: a kernel that writes back brings its times later than those.
  const bool sees_all = fs.options().writeback_cache || fs.options().exclusive;
  if (held.empty() || (sees_all && !IsTimesOfWrites(request))) return false;
  const ClassId charged(request.caller().class_id());
  // That kernel has judged whether the caller may.
  const uint32_t uid = request.times_checked() ? inode->attr().uid : call->context().uid;
  if (!fs.core().files().HoldAttributes(inode, held, uid, charged)) return false;
  if (held.atime_ns.has_value()) inode->ForgetRead();
  call->ReplyAttr(ToStat(inode->attr()), fs.KeepSeconds(*inode));
  return true;
}

// With its write-back cache the kernel brings a file's times long after they have moved: maybe
// after its last name and its last opener went, and syncfs(2) would tell everybody of that.
bool IsLateForRemoved(const Filesystem& fs, const wire::SetAttrRequest& request) {
  return fs.options().writeback_cache && !request.has_mode() && !request.has_uid() &&
         !request.has_gid() && !request.has_size();
}

void ReplyRemoved(const CallPtr& call, const Inode& inode) {
  FileAttr removed = inode.attr();
  removed.nlink = 0;
  call->ReplyAttr(ToStat(removed), 0);
}

// Of every file that loses its last name that kernel brings the times before unlink(2) ends. Who
// has it open asks the kernel, and nobody else can.
bool IsOfNobody(Filesystem& fs, const Inode& inode, const wire::SetAttrRequest& request) {
  return fs.options().writeback_cache && IsTimesOfWrites(request) &&
         fs.core().kept().Has(inode.id());
}

// With a kernel that brings its own times a report of what was written tells size and space, and
// that set-id bits are lost: of the rest it does not matter which comes first.
bool CommutesWithReports(const wire::SetAttrRequest& request) {
  return !request.has_size() && (request.mode() & (S_ISUID | S_ISGID)) == 0;
}

void SendSetattr(Filesystem& fs, const InodePtr& inode, const wire::SetAttrRequest& request,
                 Filesystem::AttrsSet then) {
  const bool resizes = request.has_size();
  if (request.has_atime_ns() || request.atime_now()) inode->ForgetRead();
  std::shared_ptr<DirCache::Changing> changing;
  if (request.has_mode() || request.has_uid() || request.has_gid()) {
    changing = fs.core().directories().BeginChange({{DirCache::Kind::kRights, inode->id(), {}}});
  }
  fs.CallAs<wire::EntryReply>(wire::MDS_SETATTR, request, false,
                              [&fs, inode, resizes, changing, then = std::move(then),
                               asked = fs.core().leases().Asked()](Result<wire::EntryReply> reply) {
                                if (!reply.ok()) return then(reply.status());
                                if (resizes) inode->Resized(fs.core().Heard(reply->attr()));
                                then(fs.Learn(inode, *reply, asked));
                              });
}

void OnSetattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const InodePtr inode = fs.Find(ino);
  wire::SetAttrRequest request = DecodeSetattr(*attr, to_set, fi != nullptr);
  fs.FillCaller(*call, inode.get(), request.mutable_caller());
  request.set_inode(inode->id().value);
  request.set_known_size(inode->size());
  // With its write-back cache the kernel brings its own times, in the name of whoever is there.
  request.set_times_checked(fs.options().exclusive);
  // It moves none when truncate(2) names the size that a file has, and says so by naming none.
  const bool keeps_times = fs.options().writeback_cache && request.has_size();
  if (keeps_times && !request.has_ctime_ns()) request.set_ctime_ns(0);
  request.set_kill_suid(request.has_size() && (to_set & FUSE_SET_ATTR_KILL_SUID) != 0);
  request.set_same_owner((to_set & kChanges) == 0);
  JudgeSetIds(fs, *inode, &request);
  // A descriptor carries the class of whoever opened it.
  const HandlePtr handle = fi == nullptr ? nullptr : fs.core().handles().Find(fi->fh);
  if (handle != nullptr) {
    const ClassId charged = fs.core().classes().Of(*inode, *handle->opener);
    request.mutable_caller()->set_class_id(charged.value);
  }
  if (handle != nullptr && request.has_size()) {
    // In this order: under the map that tells of an eviction the MDS believes what it hears.
    request.set_epoch(fs.core().map_epoch());
    if (handle->opener->is_fenced()) {
      call->Reply(LostError());
      return;
    }
  }
  if (IsOfNobody(fs, *inode, request)) return ReplyRemoved(call, *inode);
  if (HoldSetattr(fs, call, inode, request)) return;
  fs.SetAttributes(
      call, inode, request,
      [&fs, call, inode, late = IsLateForRemoved(fs, request)](const Result<FileAttr>& set) {
        if (late && set.code() == ErrorCode::kStale) {
          ReplyRemoved(call, *inode);
        } else if (set.ok()) {
          call->ReplyAttr(ToStat(*set), fs.KeepSeconds(*inode));
        } else {
          call->Reply(set.code() == ErrorCode::kStaleEpoch ? LostError() : set.status());
        }
      });
}

struct statvfs ToStatvfs(const wire::StatfsReply& reply) {
  constexpr uint64_t kBlock = 4096;
  struct statvfs stat {};
  stat.f_bsize = kBlock;
  stat.f_frsize = kBlock;
  stat.f_blocks = reply.capacity_bytes() / kBlock;
  stat.f_bfree = reply.free_bytes() / kBlock;
  stat.f_bavail = stat.f_bfree;
  stat.f_files = uint64_t{1} << 40;  // inodes are made as needed
  stat.f_ffree = stat.f_files - reply.inodes();
  stat.f_favail = stat.f_ffree;
  stat.f_namemax = 255;
  return stat;
}

void AskStatfs(Filesystem& fs, const CallPtr& call, TimePoint until) {
  fs.mds().Call<wire::StatfsReply>(
      wire::MDS_STATFS, wire::Empty(), true,
      [&fs, call, until](Result<wire::StatfsReply> reply) {
        if (reply.ok()) {
          call->ReplyStatfs(ToStatvfs(*reply));
        } else if (reply.code() == ErrorCode::kTimedOut && fs.core().clock().Now() < until) {
          AskStatfs(fs, call, until);
        } else {
          call->Reply(reply.status());
        }
      },
      fs.mds().LossPatience());
}

void OnStatfs(fuse_req_t req, fuse_ino_t /*ino*/) {
  Filesystem& fs = Filesystem::Of(req);
  AskStatfs(fs, fs.Begin(req), fs.GiveUpAt());
}

void OnReadlink(fuse_req_t req, fuse_ino_t ino) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const InodePtr inode = fs.Find(ino);
  if (const std::string target = inode->target(); !target.empty()) {
    fs.core().access_times().FileRead(inode);
    call->ReplyReadlink(target);
    return;
  }
  wire::InodeRequest request;
  fs.FillCaller(*call, inode.get(), request.mutable_caller());
  request.set_inode(inode->id().value);
  fs.mds().Call<wire::ReadlinkReply>(wire::MDS_READLINK, request, true,
                                     [&fs, call, inode](Result<wire::ReadlinkReply> reply) {
                                       if (!reply.ok()) {
                                         call->Reply(reply.status());
                                         return;
                                       }
                                       inode->set_target(reply->target());
                                       fs.core().access_times().FileRead(inode);
                                       call->ReplyReadlink(reply->target());
                                     });
}

}  // namespace

void Filesystem::SetAttributes(const CallPtr& call, const InodePtr& inode,
                               const wire::SetAttrRequest& request, AttrsSet then) {
  if (options_.writeback_cache && options_.exclusive && CommutesWithReports(request)) {
    return core_.files().TellHeld(inode, [this, inode, request, then = std::move(then)] {
      SendSetattr(*this, inode, request, then);
    });
  }
  if (!inode->has_unreported()) {
    return core_.files().WhenReported(inode->id(), [this, inode, request, then = std::move(then)] {
      SendSetattr(*this, inode, request, then);
    });
  }
  core_.files().Sync(inode, false,
                     [this, call, inode, request, then = std::move(then)](const Status& status) {
                       // A failed write-back belongs to the next fsync or close.
                       if (!status.ok()) inode->RememberError(status);
                       // Its process is dead, and others may have written since.
                       if (call->abandoned())
                         return then(Status(ErrorCode::kCancelled, "its process is dead"));
                       SendSetattr(*this, inode, request, then);
                     });
}

void AddMetaOps(fuse_lowlevel_ops* ops) {
  ops->forget = OnForget;
  ops->forget_multi = OnForgetMulti;
  ops->getattr = OnGetattr;
  ops->setattr = OnSetattr;
  ops->statfs = OnStatfs;
  ops->readlink = OnReadlink;
}

}  // namespace weir::client
