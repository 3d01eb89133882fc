// Data: read and write.
#include <fcntl.h>

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

struct Append {
  HandlePtr handle;
  uint64_t expected = 0;  // where the kernel has put it in its pages
  Buffer data;
  bool kill_suid = false;
};

// Behind the end of the file as it is now, wherever the kernel takes that to be.
void AppendData(Filesystem& fs, const CallPtr& call, const Append& append, WriteCallback reply) {
  const InodeId inode = append.handle->inode->id();
  fs.core().appends().Use(
      inode, [&fs, call, append, inode, reply = std::move(reply)](const Status& status) {
        if (!status.ok()) return reply(status);
        const uint64_t offset = append.handle->inode->size();
        auto done = [&fs, append, inode, offset, reply](const Status& written) {
          fs.core().appends().Done(inode);
          reply(written);
          if (offset != append.expected) fs.kernel_cache().Drop(fs.ToNumber(inode), [] {});
        };
        if (call->abandoned()) return done(Status(ErrorCode::kCancelled, "its process was killed"));
        fs.core().files().Write(append.handle, offset, append.data.span(), append.kill_suid, done,
                                AbandonedOf(call));
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
  auto reply = [call, size = data.size()](const Status& status) {
    if (!status.ok()) {
      call->Reply(status);
    } else {
      call->ReplyWrite(size);
    }
  };
  // Mapped pages go where they belong; the kernel of an exclusive mount knows the size by itself.
  const bool append = (fi->flags & O_APPEND) != 0 && fi->writepage == 0;
  const auto at = static_cast<uint64_t>(offset);
  if (append && !fs.options().exclusive) {
    return AppendData(fs, call, {handle, at, Buffer::CopyOf(data), kill_suid}, reply);
  }
  fs.core().files().Write(handle, at, data, kill_suid, reply, AbandonedOf(call));
}

}  // namespace

void AddIoOps(fuse_lowlevel_ops* ops) {
  ops->read = OnRead;
  ops->write_buf = OnWrite;
}

}  // namespace weir::client
