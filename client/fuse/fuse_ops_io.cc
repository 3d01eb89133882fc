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
  fs.core().files().Write(
      handle, static_cast<uint64_t>(offset), data, kill_suid,
      [call, size = data.size()](const Status& status) {
        if (!status.ok()) {
          call->Reply(status);
        } else {
          call->ReplyWrite(size);
        }
      },
      AbandonedOf(call));
}

}  // namespace

void AddIoOps(fuse_lowlevel_ops* ops) {
  ops->read = OnRead;
  ops->write_buf = OnWrite;
}

}  // namespace weir::client
