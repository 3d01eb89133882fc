// Names: lookup, mknod, mkdir, symlink, link, unlink, rmdir, rename.
#include <sys/stat.h>

#include <cerrno>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

using Kind = DirCache::Kind;

void ReplyAbsent(Filesystem& fs, const CallPtr& call) {
  if (!fs.options().exclusive) {
    call->ReplyErrno(ENOENT);
    return;
  }
  fuse_entry_param none{};  // the kernel may remember that
  none.entry_timeout = fs.KeepSeconds();
  call->ReplyEntry(none);
}

// What this mount may say by itself.
bool LookHere(Filesystem& fs, const CallPtr& call, const wire::NameRequest& request) {
  const DirCache::Look look =
      fs.core().directories().Find(InodeId(request.parent()), request.name(), request.caller());
  switch (look.kind) {
    case DirCache::Look::Kind::kAskMds:
      return false;
    case DirCache::Look::Kind::kAbsent:
      ReplyAbsent(fs, call);
      return true;
    case DirCache::Look::Kind::kDirectory:
      if (fs.options().exclusive) return false;  // the kernel would keep times that may be old
      const fuse_entry_param entry = fs.CountEntry(look.attr);
      if (!call->ReplyEntry(entry)) fs.UndoEntry(entry);
      return true;
  }
  return false;
}

// A look at the directory itself brings its lease.
void AskForLease(Filesystem& fs, wire::NameRequest request) {
  DirCache& directories = fs.core().directories();
  if (!directories.Wants(InodeId(request.parent()))) return;
  request.set_name(".");
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_LOOKUP, request, true,
      [&directories, asking = directories.Ask(InodeId())](const Result<wire::EntryReply>& reply) {
        if (reply.ok() && asking != nullptr) directories.Learn(*asking, ".", *reply);
      });
}

void OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::NameRequest request;
  fs.FillCaller(*call, parent, request.mutable_caller());
  const InodeId directory = fs.ToInode(parent);
  request.set_parent(directory.value);
  request.set_name(name);
  if (LookHere(fs, call, request)) return;
  AskForLease(fs, request);
  auto asking = fs.core().directories().Ask(directory);
  const uint64_t asked = fs.core().leases().Asked();
  auto answer = [&fs, call, asking, asked,
                 name = std::string(name)](const Result<wire::EntryReply>& reply) {
    if (reply.ok() && asking != nullptr) fs.core().directories().Learn(*asking, name, *reply);
    if (reply.code() == ErrorCode::kNotFound) return ReplyAbsent(fs, call);
    fs.ReplyEntry(call, reply, asked);
  };
  fs.mds().Call<wire::EntryReply>(wire::MDS_LOOKUP, request, true, std::move(answer));
}

void Make(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev,
          const char* target) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::CreateRequest request;
  fs.FillCaller(*call, parent, request.mutable_caller());
  request.set_parent(fs.ToInode(parent).value);
  request.set_name(name);
  request.set_mode(mode);
  request.set_umask(call->context().umask);
  request.set_rdev(rdev);
  if (target != nullptr) request.set_symlink_target(target);
  request.set_exclusive(true);
  const InodeId directory(request.parent());
  DirCache& directories = fs.core().directories();
  auto asking = directories.Ask(directory);
  auto changing = directories.BeginChange({{Kind::kAdd, directory, name}});
  auto answer = [&fs, &directories, call, asking, changing,
                 name = request.name()](const Result<wire::EntryReply>& reply) {
    if (reply.ok() && asking != nullptr) {
      if (fs.options().exclusive && S_ISDIR(reply->attr().mode())) {
        directories.LearnMade(*asking, name, *reply);
      } else {
        directories.Learn(*asking, name, *reply);
      }
    }
    fs.ReplyEntry(call, reply);
  };
  fs.CallOnce(call, wire::MDS_MKNOD, request,
              MdsClient::Decoded<wire::EntryReply>(std::move(answer)));
}

void OnMknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  Make(req, parent, name, mode, rdev, nullptr);
}

void OnMkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  Make(req, parent, name, (mode & 07777) | S_IFDIR, 0, nullptr);
}

void OnSymlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  Make(req, parent, name, S_IFLNK | 0777, 0, target);
}

void OnLink(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::LinkRequest request;
  fs.FillCaller(*call, new_parent, request.mutable_caller());
  request.set_inode(fs.ToInode(ino).value);
  request.set_new_parent(fs.ToInode(new_parent).value);
  request.set_new_name(new_name);
  auto changing =
      fs.core().directories().BeginChange({{Kind::kAdd, InodeId(request.new_parent()), new_name}});
  fs.CallOnce(call, wire::MDS_LINK, request,
              MdsClient::Decoded<wire::EntryReply>(
                  [&fs, call, changing](const Result<wire::EntryReply>& reply) {
                    fs.ReplyEntry(call, reply);
                  }));
}

void Remove(fuse_req_t req, uint32_t method, fuse_ino_t parent, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::NameRequest request;
  fs.FillCaller(*call, parent, request.mutable_caller());
  request.set_parent(fs.ToInode(parent).value);
  request.set_name(name);
  auto changing =
      fs.core().directories().BeginChange({{Kind::kRemove, InodeId(request.parent()), name}});
  fs.CallOnce(call, method, request, [&fs, call, changing](const Result<net::Reply>& reply) {
    fs.core().leases().Changed();  // the links of what had that name
    call->Reply(reply.status());
  });
}

void OnUnlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Remove(req, wire::MDS_UNLINK, parent, name);
}

void OnRmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Remove(req, wire::MDS_RMDIR, parent, name);
}

void OnRename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
              const char* new_name, unsigned int flags) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::RenameRequest request;
  fs.FillCaller(*call, parent, request.mutable_caller());
  request.set_old_parent(fs.ToInode(parent).value);
  request.set_old_name(name);
  request.set_new_parent(fs.ToInode(new_parent).value);
  request.set_new_name(new_name);
  request.set_flags(flags);
  const InodeId from(request.old_parent());
  const InodeId to(request.new_parent());
  // Either name may appear and vanish: RENAME_EXCHANGE.
  auto changing = fs.core().directories().BeginChange({{Kind::kRemove, from, name},
                                                       {Kind::kAdd, from, name},
                                                       {Kind::kRemove, to, new_name},
                                                       {Kind::kAdd, to, new_name}});
  fs.CallOnce(call, wire::MDS_RENAME, request,
              [&fs, call, changing](const Result<net::Reply>& reply) {
                fs.core().leases().Changed();  // of what moved, and of what was replaced
                call->Reply(reply.status());
              });
}

}  // namespace

void AddNameOps(fuse_lowlevel_ops* ops) {
  ops->lookup = OnLookup;
  ops->mknod = OnMknod;
  ops->mkdir = OnMkdir;
  ops->symlink = OnSymlink;
  ops->link = OnLink;
  ops->unlink = OnUnlink;
  ops->rmdir = OnRmdir;
  ops->rename = OnRename;
}

}  // namespace weir::client
