// Ranges without data: fallocate, lseek for data and holes, copy_file_range.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

// Of these changes the kernel does not say whether whoever makes them may keep set-id bits.
RightsLost LostBy(Filesystem& fs, const Call& call, const Inode& inode) {
  if (!inode.MayLose({true, true})) return {call.context().uid != 0, true};
  const fuse_ctx& who = call.context();
  const CallerRights rights = fs.core().callers().Anew({who.uid, who.gid, who.pid});
  const bool keeps = rights.known ? rights.Can(CAP_FSETID) : who.uid == 0;
  return {!keeps, true};
}

void ChangeRange(Filesystem& fs, const CallPtr& call, const HandlePtr& handle,
                 const RangeChange& change) {
  const auto reply = [call](const Status& status) { call->Reply(status); };
  const uint64_t end = change.allocate ? change.offset + change.length : 0;
  fs.WhenQuotaAllows(handle->inode, end, [&fs, call, handle, change, reply](const Status& status) {
    if (!status.ok()) return reply(status);
    fs.core().files().Allocate(handle, change, reply, AbandonedOf(call));
  });
}

// OSDs have the last word; what cannot be is refused before it takes room from others for a moment.
// While removals are under way there is more room than the MDS knows.
void AllocateIfThereIsRoom(Filesystem& fs, const CallPtr& call, const HandlePtr& handle,
                           const RangeChange& change) {
  const uint64_t has = handle->inode->attr().blocks * 512;
  fs.mds().Call<wire::StatfsReply>(
      wire::MDS_STATFS, wire::Empty(), true,
      [&fs, call, handle, change, has](Result<wire::StatfsReply> space) {
        if (!space.ok()) {
          call->Reply(space.status());
        } else if (change.length > has && change.length - has > space->free_bytes()) {
          fs.core().AskRemovals([&fs, call, handle, change](const Result<uint64_t>& pending) {
            if (pending.ok() && *pending > 0) return ChangeRange(fs, call, handle, change);
            call->ReplyErrno(ENOSPC);
          });
        } else {
          ChangeRange(fs, call, handle, change);
        }
      });
}

// What is allocated behind the end stays, as on a local disk.
void PunchToTheEnd(Filesystem& fs, const CallPtr& call, const HandlePtr& handle,
                   RangeChange change) {
  const uint64_t end = change.offset + change.length;
  fs.WhenSizeIsKnown(handle->inode, end, [&fs, call, handle, change, end]() mutable {
    const uint64_t size = handle->inode->size();
    const uint64_t last = (size + kBlockSize - 1) / kBlockSize * kBlockSize;
    if (end > last) change.length = last - std::min(last, change.offset);
    ChangeRange(fs, call, handle, change);
  });
}

void OnFallocate(fuse_req_t req, fuse_ino_t /*ino*/, int mode, off_t offset, off_t length,
                 fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  handle->Changing(call->context().pid);
  const int kind = mode & ~FALLOC_FL_KEEP_SIZE;
  const bool known = kind == 0 || kind == FALLOC_FL_PUNCH_HOLE || kind == FALLOC_FL_ZERO_RANGE;
  if (!known) {
    call->ReplyErrno(EOPNOTSUPP);
    return;
  }
  RangeChange change;
  change.offset = static_cast<uint64_t>(offset);
  change.length = static_cast<uint64_t>(length);
  change.zeros = kind != 0;
  change.allocate = kind != FALLOC_FL_PUNCH_HOLE;
  change.keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  change.lost = LostBy(fs, *call, *handle->inode);
  fs.DropRights(*call, handle->inode, change.lost,
                [&fs, call, handle, change](const Status& status) {
                  if (!status.ok()) {
                    call->Reply(status);
                  } else if (!change.allocate) {
                    PunchToTheEnd(fs, call, handle, change);
                  } else {
                    AllocateIfThereIsRoom(fs, call, handle, change);
                  }
                });
}

void SeekAndReply(Filesystem& fs, const CallPtr& call, const HandlePtr& handle, Wanted wanted,
                  uint64_t offset) {
  fs.core().files().Seek(handle, wanted, offset,
                         [call](const Result<std::optional<uint64_t>>& found) {
                           if (!found.ok()) {
                             call->Reply(found.status());
                           } else if (!found->has_value()) {
                             call->ReplyErrno(ENXIO);
                           } else {
                             call->ReplyOffset(**found);
                           }
                         });
}

// The size comes from the MDS, as the kernel does not ask before.
void SeekInFile(Filesystem& fs, const CallPtr& call, const HandlePtr& handle, Wanted wanted,
                uint64_t offset) {
  wire::InodeRequest request;
  request.set_inode(handle->inode->id().value);
  fs.mds().Call<wire::EntryReply>(
      wire::MDS_GETATTR, request, true,
      [&fs, call, handle, wanted, offset,
       asked = fs.core().leases().Asked()](Result<wire::EntryReply> reply) {
        if (!reply.ok()) {
          call->Reply(reply.status());
          return;
        }
        fs.Learn(handle->inode, *reply, asked, Filesystem::Learns::kNoLease);
        SeekAndReply(fs, call, handle, wanted, offset);
      });
}

void OnLseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  if (whence != SEEK_DATA && whence != SEEK_HOLE) {
    call->ReplyErrno(EINVAL);
    return;
  }
  const Wanted wanted = whence == SEEK_DATA ? Wanted::kData : Wanted::kHole;
  const auto from = static_cast<uint64_t>(offset);
  // What only the kernel has, mapped or in its write-back cache, would pass for holes.
  auto seek = [&fs, call, handle, wanted, from] {
    if (fs.options().exclusive) return SeekAndReply(fs, call, handle, wanted, from);
    SeekInFile(fs, call, handle, wanted, from);
  };
  if (!handle->inode->has_writers()) return seek();
  fs.kernel_cache().Drop(ino, seek);
}

// The kernel does not take that for a read.
void NoteCopied(Filesystem& fs, const Handle& from) {
  const bool counts = fs.core().access_times().FileReadCounts(*from.inode);
  if ((from.flags & O_NOATIME) != 0 || !counts) return;
  fs.core().access_times().FileRead(from.inode);
  fs.AttributesMoved(*from.inode);
}

void OnCopyFileRange(fuse_req_t req, fuse_ino_t /*ino_in*/, off_t off_in, fuse_file_info* fi_in,
                     fuse_ino_t /*ino_out*/, off_t off_out, fuse_file_info* fi_out, size_t length,
                     int flags) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr from = fs.core().handles().Find(fi_in->fh);
  const HandlePtr to = fs.core().handles().Find(fi_out->fh);
  if (from == nullptr || to == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  to->Changing(call->context().pid);
  RangeChange range;
  range.offset = static_cast<uint64_t>(off_out);
  range.length = length;
  range.lost = LostBy(fs, *call, *to->inode);
  const auto from_offset = static_cast<uint64_t>(off_in);
  const bool over_itself = from->inode == to->inode && from_offset < range.offset + length &&
                           range.offset < from_offset + length;
  if (flags != 0 || over_itself) {
    call->ReplyErrno(EINVAL);
    return;
  }
  auto reply = [&fs, call, from](const Result<uint64_t>& copied) {
    if (!copied.ok()) {
      call->Reply(copied.status());
    } else {
      NoteCopied(fs, *from);
      fs.kernel_attributes().WhenTold([call, size = *copied] { call->ReplyWrite(size); });
    }
  };
  auto copy = [&fs, call, from, from_offset, to, range, reply] {
    const uint64_t size = from->inode->size();
    const uint64_t length_there = std::min(range.length, size - std::min(size, from_offset));
    fs.WhenQuotaAllows(to->inode, range.offset + length_there,
                       [&fs, call, from, from_offset, to, range, reply](const Status& status) {
                         if (!status.ok()) return reply(status);
                         fs.core().files().Copy(from, from_offset, to, range, reply,
                                                AbandonedOf(call));
                       });
  };
  fs.DropRights(*call, to->inode, range.lost,
                [&fs, from, end = from_offset + length, reply, copy](const Status& status) {
                  if (!status.ok()) return reply(status);
                  fs.WhenSizeIsKnown(from->inode, end, copy);
                });
}

}  // namespace

void AddRangeOps(fuse_lowlevel_ops* ops) {
  ops->fallocate = OnFallocate;
  ops->lseek = OnLseek;
  ops->copy_file_range = OnCopyFileRange;
}

}  // namespace weir::client
