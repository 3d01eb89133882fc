// Names: lookup, mknod, mkdir, symlink, link, unlink, rmdir, rename.
#include <linux/fs.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

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
  none.entry_timeout = 86'400;
  call->ReplyEntry(none);
}

// A name that moves or goes is not durable before attributes that were set earlier, and a sticky
// directory asks whose a file is.
template <typename Request>
void AfterHeld(Filesystem& fs, const CallPtr& call, uint32_t method, const Request& request,
               MdsClient::RawCallback callback) {
  fs.core().files().TellHeld([&fs, call, method, request, callback = std::move(callback)] {
    fs.CallOnce(call, method, request, callback);
  });
}

// What has been closed and is not stored yet may get a new name, but replaces none before it has
// its data: programs write aside, and rename, so that one or the other is there whatever happens.
void AskRename(Filesystem& fs, const CallPtr& call, const wire::RenameRequest& request,
               MdsClient::RawCallback callback) {
  FileIo& files = fs.core().files();
  const MadeName from{InodeId(request.old_parent()), request.old_name()};
  const MadeName to{InodeId(request.new_parent()), request.new_name()};
  auto rename = [&fs, call, request, callback] {
    AfterHeld(fs, call, wire::MDS_RENAME, request, callback);
  };
  if ((request.flags() & RENAME_EXCHANGE) != 0) {
    return files.StoreClosed(from, [&files, to, rename] { files.StoreClosed(to, rename); });
  }
  if ((request.flags() & RENAME_NOREPLACE) != 0 || !files.HasClosed(from)) return rename();
  wire::RenameRequest gently = request;
  gently.set_flags(request.flags() | RENAME_NOREPLACE);
  auto tried = [&files, from, rename, callback = std::move(callback)](Result<net::Reply> reply) {
    if (reply.code() != ErrorCode::kExists) return callback(std::move(reply));
    files.StoreClosed(from, rename);
  };
  AfterHeld(fs, call, wire::MDS_RENAME, gently, std::move(tried));
}

// What of it was closed and is not stored yet has another name now.
void NamesMoved(Filesystem& fs, const wire::RenameRequest& request,
                const wire::TouchedReply& reply) {
  if (reply.inodes().empty()) return;
  FileIo& files = fs.core().files();
  const MadeName from{InodeId(request.old_parent()), request.old_name()};
  const MadeName to{InodeId(request.new_parent()), request.new_name()};
  files.Renamed(InodeId(reply.inodes(0)), from, to);
  const bool exchanged = (request.flags() & RENAME_EXCHANGE) != 0;
  if (exchanged && reply.inodes_size() > 1) files.Renamed(InodeId(reply.inodes(1)), to, from);
}

// What this mount may say by itself.
bool LookHere(Filesystem& fs, const CallPtr& call, const InodePtr& parent,
              const wire::NameRequest& request, const NodeNumbers::Place& place) {
  const uint64_t names_asked = fs.core().names().Asked(*parent);
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
      break;
    case DirCache::Look::Kind::kOther:
      break;
  }
  fuse_entry_param entry{};
  if (!fs.CountKnown(look, place, &entry)) return false;
  entry.entry_timeout = fs.KeepName(*parent, request.name(), names_asked);
  fs.ReplyEntry(call, entry);
  return true;
}

// A look at the directory itself brings its leases.
void AskForLease(Filesystem& fs, const InodePtr& directory, wire::NameRequest request) {
  DirCache& directories = fs.core().directories();
  const bool lacks_one = fs.core().leases().NamesOf(*directory) == 0;
  if (!directories.Wants(directory->id(), lacks_one)) return;
  request.set_name(".");
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_LOOKUP, request, true,
      [&fs, directory, asking = directories.Ask(InodeId()),
       asked = fs.core().leases().Asked()](const Result<wire::EntryReply>& reply) {
        if (!reply.ok() || asking == nullptr) return;
        fs.core().directories().Learn(*asking, ".", *reply);
        fs.Learn(directory, *reply, asked);
      });
}

// Path walks never ask for these: it is of a file handle, "." for what it names when the kernel
// does not know that any more, ".." on the way up from a directory.
bool IsOfHandle(std::string_view name) {
  return name == "." || name == "..";
}

void LookupByHandle(Filesystem& fs, const CallPtr& call, fuse_ino_t number, const char* name) {
  const InodeId inode = fs.ToInode(number);
  // So another mount, of more than this one, calls what is the root here.
  if (inode == fs.mds().root() && number != FUSE_ROOT_ID) return (void)call->ReplyErrno(ESTALE);
  wire::NameRequest request;
  fs.FillCaller(*call, number, request.mutable_caller());
  request.set_parent(inode.value);
  request.set_name(name);
  request.set_handle_below(fs.mds().root().value);
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_LOOKUP, request, true,
      [&fs, call, place = NodeNumbers::Place{number, name},
       asked = fs.core().leases().Asked()](const Result<wire::EntryReply>& reply) {
        if (!reply.ok()) {
          call->Reply(reply.status());
          return;
        }
        fuse_entry_param entry = fs.LearnEntry(*reply, asked, &place);
        entry.entry_timeout = 0;
        fs.ReplyEntry(call, entry);
      });
}

void OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  if (IsOfHandle(name)) return LookupByHandle(fs, call, parent, name);
  wire::NameRequest request;
  fs.FillCaller(*call, parent, request.mutable_caller());
  const InodePtr directory = fs.Find(parent);
  request.set_parent(directory->id().value);
  request.set_name(name);
  AskForLease(fs, directory, request);
  if (LookHere(fs, call, directory, request, {parent, name})) return;
  auto answer = [&fs, call, naming = fs.Ask(parent, name)](const Result<wire::EntryReply>& reply) {
    if (reply.code() == ErrorCode::kNotFound) return ReplyAbsent(fs, call);
    if (!reply.ok()) {
      call->Reply(reply.status());
      return;
    }
    fs.ReplyEntry(call, fs.LearnName(naming, *reply));
  };
  fs.CallAs<wire::EntryReply>(wire::MDS_LOOKUP, request, true, std::move(answer));
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
  if ((mode & S_ISGID) != 0) fs.LookAgain(request.mutable_caller());
  request.set_umask(call->context().umask);
  request.set_rdev(rdev);
  if (target != nullptr) request.set_symlink_target(target);
  request.set_exclusive(true);
  const InodeId directory(request.parent());
  DirCache& directories = fs.core().directories();
  auto naming = fs.Ask(parent, name);
  auto changing = directories.BeginChange({{Kind::kAdd, directory, name}});
  auto answer = [&fs, &directories, call, naming, changing](const Result<wire::EntryReply>& reply) {
    fs.core().NamesChanged(changing.get(), reply);
    if (!reply.ok()) {
      call->Reply(reply.status());
      return;
    }
    if (naming.asking != nullptr && fs.options().exclusive && S_ISDIR(reply->attr().mode())) {
      directories.LearnMade(*naming.asking, naming.place.name, *reply);
    }
    fs.ReplyEntry(call, fs.LearnName(naming, *reply));
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
  auto answer = [&fs, call, changing,
                 asked = fs.core().leases().Asked()](const Result<wire::EntryReply>& reply) {
    fs.core().NamesChanged(changing.get(), reply);
    if (!reply.ok()) {
      call->Reply(reply.status());
      return;
    }
    fs.ReplyEntry(call, fs.LearnEntry(*reply, asked, nullptr, Filesystem::Learns::kNoLease));
  };
  AfterHeld(fs, call, wire::MDS_LINK, request,
            MdsClient::Decoded<wire::EntryReply>(std::move(answer)));
}

// Before the kernel hears of it, which may then forget the inode.
void TakeKept(Filesystem& fs, const Result<wire::TouchedReply>& reply) {
  if (reply.ok() && reply->kept() != 0) fs.core().kept().Keep(InodeId(reply->kept()));
}

void Remove(fuse_req_t req, uint32_t method, fuse_ino_t parent, const char* name) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  wire::NameRequest request;
  fs.FillCaller(*call, parent, request.mutable_caller());
  request.set_parent(fs.ToInode(parent).value);
  request.set_name(name);
  request.set_keep(true);
  auto changing =
      fs.core().directories().BeginChange({{Kind::kRemove, InodeId(request.parent()), name}});
  auto answer = [&fs, call, changing](const Result<wire::TouchedReply>& reply) {
    fs.core().NamesChanged(changing.get(), reply);
    TakeKept(fs, reply);
    call->Reply(reply.status());
  };
  AfterHeld(fs, call, method, request, MdsClient::Decoded<wire::TouchedReply>(std::move(answer)));
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
  request.set_keep(true);
  const InodeId from(request.old_parent());
  const InodeId to(request.new_parent());
  // Either name may appear and vanish: RENAME_EXCHANGE.
  auto changing = fs.core().directories().BeginChange({{Kind::kRemove, from, name},
                                                       {Kind::kAdd, from, name},
                                                       {Kind::kRemove, to, new_name},
                                                       {Kind::kAdd, to, new_name}});
  KernelNames& names = fs.core().names();
  const bool uncovered = names.Moves(from, name, *fs.Find(new_parent), new_name);
  const bool exchanges = (flags & RENAME_EXCHANGE) != 0;
  const bool back = exchanges && names.Moves(to, new_name, *fs.Find(parent), name);
  auto answer = [&fs, call, request, changing, uncovered, back, exchanges,
                 left = NodeNumbers::Place{parent, name},
                 reached = NodeNumbers::Place{new_parent, new_name}](
                    const Result<wire::TouchedReply>& reply) {
    if (reply.ok()) fs.Renamed(*reply, left, reached, exchanges);
    if (reply.ok()) NamesMoved(fs, request, *reply);
    if (reply.ok() && changing != nullptr && !exchanges && reply->moved_size() > 0) {
      fs.core().directories().LearnMoved(*changing, InodeId(request.new_parent()),
                                         request.new_name(), InodeId(reply->moved(0).inode()));
    }
    fs.core().NamesChanged(changing.get(), reply);
    TakeKept(fs, reply);
    call->Reply(reply.status());
    KernelCache& kernel = fs.kernel_cache();
    if (uncovered) kernel.AskAgainSoon(reached.parent, reached.name);
    if (back) kernel.AskAgainSoon(left.parent, left.name);
  };
  AskRename(fs, call, request, MdsClient::Decoded<wire::TouchedReply>(std::move(answer)));
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
