// Directories: opendir, readdir, readdirplus, releasedir, fsyncdir.
//
// Nothing is kept here between two calls: each asks the MDS for what fits into the kernel's buffer,
// so that no entry handed out is older than its request. The kernel keeps listings under leases.
// Offsets: 1 and 2 stand behind "." and "..", the rest carry the MDS's cookies plus 2 and where the
// listing ends (vfs/listing_position.h).
#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "client/fuse/filesystem.h"
#include "client/vfs/listing_position.h"

namespace weir::client {
namespace {

constexpr uint64_t kBehindDot = 1;
constexpr uint64_t kBehindDotDot = 2;
constexpr uint64_t kLeavesAtime = 1;  // handle of a directory opened with O_NOATIME; others have 0

// One buffer of entries for the kernel.
class Listing {
 public:
  // Made before the MDS is asked.
  Listing(Filesystem& fs, fuse_ino_t directory, size_t size, bool plus)
      : fs_(fs), plus_(plus), naming_(fs.Ask(directory, "")), bytes_(size) {}

  bool AddDot(const char* name, InodeId inode, uint64_t offset) {
    fuse_entry_param entry{};  // number 0: no attributes, no lookup counted
    entry.attr.st_ino = inode.value;
    entry.attr.st_mode = S_IFDIR;
    return Put(name, entry, offset);
  }

  // `end`: of ReaddirReply.before_cookie.
  bool Add(const wire::DirEntry& dirent, uint64_t end) {
    const uint64_t offset = EncodePosition({dirent.cookie() + kBehindDotDot, end + kBehindDotDot});
    if (!plus_ || !dirent.has_entry()) {
      fuse_entry_param entry{};
      entry.attr.st_ino = dirent.inode();
      entry.attr.st_mode = dirent.mode();
      return Put(dirent.name().c_str(), entry, offset);
    }
    naming_.place.name = dirent.name();
    const fuse_entry_param entry = fs_.LearnName(naming_, dirent.entry());
    if (!Put(dirent.name().c_str(), entry, offset)) {
      fs_.UndoEntry(entry);
      return false;
    }
    entries_.push_back(entry);
    return true;
  }

  void Reply(const CallPtr& call) {
    if (call->ReplyRaw(bytes_.data(), used_)) return;
    for (const fuse_entry_param& entry : entries_) fs_.UndoEntry(entry);
  }

 private:
  bool Put(const char* name, const fuse_entry_param& entry, uint64_t offset) {
    char* to = bytes_.data() + used_;
    const size_t room = bytes_.size() - used_;
    const auto next = static_cast<off_t>(offset);
    const size_t need = plus_ ? fuse_add_direntry_plus(nullptr, to, room, name, &entry, next)
                              : fuse_add_direntry(nullptr, to, room, name, &entry.attr, next);
    if (need > room) return false;
    used_ += need;
    return true;
  }

  Filesystem& fs_;
  const bool plus_;
  Filesystem::Naming naming_;
  std::vector<char> bytes_;
  size_t used_ = 0;
  std::vector<fuse_entry_param> entries_;
};

void Answer(Filesystem& fs, const CallPtr& call, InodeId directory, uint64_t at, Listing& listing,
            const wire::ReaddirReply& reply) {
  const InodeId parent = directory == fs.mds().root() ? directory : InodeId(reply.parent());
  bool fits = true;
  if (at < kBehindDot) fits = listing.AddDot(".", directory, kBehindDot);
  if (fits && at < kBehindDotDot) fits = listing.AddDot("..", parent, kBehindDotDot);
  for (int i = 0; fits && i < reply.entries_size(); ++i) {
    fits = listing.Add(reply.entries(i), reply.before_cookie());
  }
  listing.Reply(call);
}

// A listing began: `attr` is what the directory is like, which changes of names have moved.
void NoteListing(Filesystem& fs, InodeId directory, const wire::Attr& attr, uint64_t handle) {
  const InodePtr inode = fs.core().inodes().Find(directory);
  if (inode == nullptr) return;
  (void)fs.core().inodes().Update(inode, fs.core().Heard(attr));
  if (handle != kLeavesAtime) fs.core().access_times().DirectoryRead(inode);
}

void List(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, const fuse_file_info& file,
          bool plus) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const ListingPosition from = DecodePosition(static_cast<uint64_t>(offset));
  const InodeId directory = fs.ToInode(ino);
  // The least that an entry takes: a header and a name of 8 bytes.
  const size_t least = plus ? 160 : 32;
  wire::ReaddirRequest request;
  fs.FillCaller(*call, ino, request.mutable_caller());
  request.set_inode(directory.value);
  request.set_after_cookie(from.at <= kBehindDotDot ? 0 : from.at - kBehindDotDot);
  request.set_before_cookie(from.end <= kBehindDotDot ? 0 : from.end - kBehindDotDot);
  request.set_max_entries(static_cast<uint32_t>(std::max<size_t>(size / least, 1)));
  request.set_plus(plus);
  auto listing = std::make_shared<Listing>(fs, ino, size, plus);
  fs.CallAs<wire::ReaddirReply>(
      wire::MDS_READDIR, request, true,
      [&fs, call, directory, from, listing, handle = file.fh](Result<wire::ReaddirReply> reply) {
        if (!reply.ok()) {
          call->Reply(reply.status());
        } else {
          if (reply->has_directory()) NoteListing(fs, directory, reply->directory(), handle);
          Answer(fs, call, directory, from.at, *listing, *reply);
        }
      });
}

void OnReaddir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* fi) {
  List(req, ino, size, offset, *fi, false);
}

void OnReaddirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* fi) {
  List(req, ino, size, offset, *fi, true);
}

// Reading permission is asked for here, so that an open directory stays readable.
void OnOpendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  OpenReply how;
  if ((fi->flags & O_NOATIME) != 0) how.handle = kLeavesAtime;
  // It drops a listing when it changes the directory, or is told to, as long as there is a lease.
  const InodePtr directory = fs.Find(ino);
  const bool leased = fs.KernelMayKeep() && fs.ToNumbers(directory->id()).size() == 1 &&
                      fs.core().leases().NamesOf(*directory) != 0;
  // What it lists by itself is not seen here: for a reading that counts it has to ask.
  const AccessTimes& times = fs.core().access_times();
  const bool noted = how.handle != kLeavesAtime;
  how.cache_listing =
      (fs.options().exclusive || leased) && !(noted && times.EachDirectoryReadCounts());
  how.keep_cache = how.cache_listing && !(noted && times.DirectoryReadCounts(*directory));
  const std::string opened = EncodeOpen(how);
  if (fs.options().exclusive) {  // the kernel has checked
    call->ReplyRaw(opened.data(), opened.size());
    return;
  }
  wire::AccessRequest request;
  fs.FillCaller(*call, ino, request.mutable_caller());
  request.set_inode(fs.ToInode(ino).value);
  request.set_mask(R_OK);
  fs.CallAs<wire::Empty>(wire::MDS_ACCESS, request, true,
                         [call, opened](const Result<wire::Empty>& reply) {
                           if (!reply.ok()) {
                             call->Reply(reply.status());
                           } else {
                             call->ReplyRaw(opened.data(), opened.size());
                           }
                         });
}

void OnReleasedir(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* /*fi*/) {
  fuse_reply_err(req, 0);
}

// What was answered early of it, and before that elsewhere, is durable then.
void OnFsyncdir(fuse_req_t req, fuse_ino_t ino, int /*datasync*/, fuse_file_info* /*fi*/) {
  Filesystem& fs = Filesystem::Of(req);
  fs.core().CommitNames(fs.ToInode(ino),
                        [call = fs.Begin(req)](const Status& status) { call->Reply(status); });
}

}  // namespace

void AddDirOps(fuse_lowlevel_ops* ops) {
  ops->opendir = OnOpendir;
  ops->readdir = OnReaddir;
  ops->readdirplus = OnReaddirplus;
  ops->releasedir = OnReleasedir;
  ops->fsyncdir = OnFsyncdir;
}

}  // namespace weir::client
