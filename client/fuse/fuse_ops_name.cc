// Names: lookup, mknod, mkdir, symlink, link, unlink, rmdir, rename.
#include <sys/stat.h>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

void OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::NameRequest request;
  fs.FillCaller(*call, request.mutable_caller());
  request.set_parent(fs.ToInode(parent).value);
  request.set_name(name);
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_LOOKUP, request, true, [&fs, call](Result<wire::EntryReply> reply) {
        if (reply.code() == ErrorCode::kNotFound && fs.options().exclusive) {
          fuse_entry_param none{};  // the kernel may remember that
          none.entry_timeout = fs.KeepSeconds();
          call->ReplyEntry(none);
          return;
        }
        fs.ReplyEntry(call, reply);
      });
}

void Make(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev,
          const char* target) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::CreateRequest request;
  fs.FillCaller(*call, request.mutable_caller());
  request.set_parent(fs.ToInode(parent).value);
  request.set_name(name);
  request.set_mode(mode);
  request.set_rdev(rdev);
  if (target != nullptr) request.set_symlink_target(target);
  request.set_exclusive(true);
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_MKNOD, request, false,
      [&fs, call](const Result<wire::EntryReply>& reply) { fs.ReplyEntry(call, reply); });
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
  fs.FillCaller(*call, request.mutable_caller());
  request.set_inode(fs.ToInode(ino).value);
  request.set_new_parent(fs.ToInode(new_parent).value);
  request.set_new_name(new_name);
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_LINK, request, false,
      [&fs, call](const Result<wire::EntryReply>& reply) { fs.ReplyEntry(call, reply); });
}

void Remove(fuse_req_t req, uint32_t method, fuse_ino_t parent, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::NameRequest request;
  fs.FillCaller(*call, request.mutable_caller());
  request.set_parent(fs.ToInode(parent).value);
  request.set_name(name);
  fs.mds().CallRaw(method, request, false,
                   [call](const Result<net::Reply>& reply) { call->Reply(reply.status()); });
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
  fs.FillCaller(*call, request.mutable_caller());
  request.set_old_parent(fs.ToInode(parent).value);
  request.set_old_name(name);
  request.set_new_parent(fs.ToInode(new_parent).value);
  request.set_new_name(new_name);
  request.set_flags(flags);
  fs.mds().CallRaw(wire::MDS_RENAME, request, false,
                   [call](const Result<net::Reply>& reply) { call->Reply(reply.status()); });
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
