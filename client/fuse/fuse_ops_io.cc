// Data: read and write.
#include <cerrno>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

void OnRead(fuse_req_t req, fuse_ino_t /*ino*/, size_t size, off_t offset, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  fs.core().files().Read(
      handle, static_cast<uint64_t>(offset), size,
      [call](const Result<Segments>& data) {
        if (!data.ok()) {
          call->Reply(data.status());
        } else {
          call->ReplySegments(*data);
        }
      },
      AbandonedOf(call));
}

// The payload where libfuse received it; without splice it is always one piece of memory.
std::span<const uint8_t> PayloadOf(const fuse_bufvec& vector) {
  const fuse_buf& buffer = vector.buf[vector.idx];
  if (vector.count != 1 || (buffer.flags & FUSE_BUF_IS_FD) != 0) return {};
  return {static_cast<const uint8_t*>(buffer.mem) + vector.off, buffer.size - vector.off};
}

struct Writing {
  HandlePtr handle;
  uint64_t offset = 0;
  bool kill_suid = false;
};

void Write(Filesystem& fs, const CallPtr& call, const Writing& writing,
           std::span<const uint8_t> data) {
  fs.core().files().Write(
      writing.handle, writing.offset, data, writing.kill_suid,
      [call, size = data.size()](const Status& status) {
        if (!status.ok()) {
          call->Reply(status);
        } else {
          call->ReplyWrite(size);
        }
      },
      AbandonedOf(call));
}

// A quota seems to be in the way: the MDS knows better once it has heard of all that was written.
void AskForRoom(Filesystem& fs, const CallPtr& call, const Writing& writing,
                std::span<const uint8_t> data) {
  auto copy = std::make_shared<std::vector<uint8_t>>(data.begin(), data.end());
  const InodePtr inode = writing.handle->inode;
  fs.core().files().Sync(inode, false, [&fs, call, writing, copy, inode](const Status& status) {
    if (!status.ok()) inode->RememberError(status);
    wire::InodeRequest request;
    request.set_inode(inode->id().value);
    fs.mds().Call<wire::EntryReply>(
        wire::MDS_GETATTR, request, true,
        [&fs, call, writing, copy, inode](const Result<wire::EntryReply>& reply) {
          if (reply.ok()) fs.Learn(inode, *reply);
          if (inode->QuotaAllows(writing.offset + copy->size())) {
            Write(fs, call, writing, *copy);
          } else {
            call->ReplyErrno(EDQUOT);
          }
        });
  });
}

void OnWrite(fuse_req_t req, fuse_ino_t /*ino*/, fuse_bufvec* vector, off_t offset,
             fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  const std::span<const uint8_t> data = PayloadOf(*vector);
  if (data.size() != fuse_buf_size(vector)) {
    call->ReplyErrno(EIO);
    return;
  }
  // The kernel's own write-back names nobody; with it the kernel drops set-id bits by itself.
  const bool kill_suid =
      !fs.options().exclusive && call->context().uid != 0 && handle->inode->has_suid_or_sgid();
  const Writing writing{handle, static_cast<uint64_t>(offset), kill_suid};
  if (handle->inode->QuotaAllows(writing.offset + data.size())) {
    Write(fs, call, writing, data);
  } else {
    AskForRoom(fs, call, writing, data);
  }
}

}  // namespace

void AddIoOps(fuse_lowlevel_ops* ops) {
  ops->read = OnRead;
  ops->write_buf = OnWrite;
}

}  // namespace weir::client
