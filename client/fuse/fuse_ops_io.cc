// Data: read and write.
#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "client/fuse/filesystem.h"
#include "client/fuse/request_handler.h"
#include "client/takeover/takeover_log.h"

namespace weir::client {
namespace {

constexpr size_t kKernelPage = 4096;

// Whether the kernel keeps no pages of what goes through the handle.
bool PassesPages(const Filesystem& fs, const Handle& handle) {
  return (handle.direct && !fs.options().writeback_cache) ||
         (!fs.options().exclusive && (handle.flags & O_APPEND) != 0);
}

void OnRead(fuse_req_t req, fuse_ino_t /*ino*/, size_t size, off_t offset, fuse_file_info* fi) {
  Filesystem& fs = Filesystem::Of(req);
  CallPtr call = fs.Begin(req);
  const HandlePtr handle = fs.core().handles().Find(fi->fh);
  if (handle == nullptr) {
    call->ReplyErrno(EBADF);
    return;
  }
  if (handle->locked) call->Hold(fs.core().locks().Ending());
  if ((handle->flags & O_NOATIME) == 0) fs.core().access_times().FileRead(handle->inode);
  const auto from = static_cast<uint64_t>(offset);
  auto read = [&fs, call, handle, from, size] {
    fs.core().files().Read(
        handle, from, size,
        [call](const Result<Segments>& data) {
          if (!data.ok()) {
            call->Reply(data.status());
          } else {
            call->ReplySegments(*data);
          }
        },
        AbandonedOf(call));
  };
  // Reads into pages, of a mapping say, name no owner of locks: the kernel knows the size then, and
  // holds the page, so that it must not be asked to drop it.
  if (fi->lock_owner == 0 || !PassesPages(fs, *handle)) {
    handle->inode->FillsPages();
    return read();
  }
  fs.WhenSizeIsKnown(handle->inode, from + size, read);
}

// The payload where libfuse received it; without splice it is always one piece of memory.
std::span<const uint8_t> PayloadOf(const fuse_bufvec& vector) {
  const fuse_buf& buffer = vector.buf[vector.idx];
  if (vector.count != 1 || (buffer.flags & FUSE_BUF_IS_FD) != 0) return {};
  return {static_cast<const uint8_t*>(buffer.mem) + vector.off, buffer.size - vector.off};
}

struct Writing {
  HandlePtr handle;
  uint64_t offset = 0;  // of an append: where the kernel has put it in its pages
  RightsLost lost;
};

// Where a quota may be in the way the data is kept until that is known.
void Write(Filesystem& fs, const CallPtr& call, const Writing& writing, const Buffer& data,
           WriteCallback done) {
  const InodePtr& inode = writing.handle->inode;
  if (inode->QuotaAllows(writing.offset + data.size())) {
    return fs.core().files().Write(writing.handle, writing.offset, data, writing.lost,
                                   std::move(done), AbandonedOf(call));
  }
  fs.WhenQuotaAllows(
      inode, writing.offset + data.size(),
      [&fs, call, writing, kept = data.Kept(), done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(status);
        fs.core().files().Write(writing.handle, writing.offset, kept, writing.lost, done,
                                AbandonedOf(call));
      });
}

// Whether a predecessor of this process has made this append, and could not say so: the file has
// reached its end, and there is nothing else where it was to go. Under the right to append.
void WhetherAppended(Filesystem& fs, const CallPtr& call, const Writing& writing,
                     const Buffer& data, std::function<void(bool)> then) {
  TakeoverLog* const takeover = fs.core().takeover();
  const auto at = takeover == nullptr ? std::nullopt : takeover->AppendOf(call->number());
  if (!at.has_value() || writing.handle->inode->size() < *at + data.size()) return then(false);
  fs.core().files().Read(
      writing.handle, *at, data.size(),
      [data, then = std::move(then)](const Result<Segments>& found) {
        if (!found.ok()) return then(false);
        size_t same = 0;
        for (const Buffer& segment : *found) {
          const bool fits = same + segment.size() <= data.size();
          if (!fits || std::memcmp(segment.data(), data.data() + same, segment.size()) != 0) break;
          same += segment.size();
        }
        then(same == data.size());
      },
      AbandonedOf(call));
}

// Under the right to append: where the file ends.
void AppendNow(Filesystem& fs, const CallPtr& call, const Writing& writing, const Buffer& data,
               const WriteCallback& reply) {
  const InodeId inode = writing.handle->inode->id();
  const Writing there{writing.handle, writing.handle->inode->size(), writing.lost};
  TakeoverLog* const takeover = fs.core().takeover();
  if (takeover != nullptr) takeover->AppendBegins(call->number(), there.offset);
  // A process that reads through pages right after the append must find it.
  auto done = [&fs, inode, reply, takeover, number = call->number(),
               moved = there.offset != writing.offset](const Status& written) {
    fs.core().appends().Done(inode);
    auto answer = [reply, takeover, number, written] {
      reply(written);
      if (takeover != nullptr) takeover->ChangeEnds(number);
    };
    if (!moved) return answer();
    fs.kernel_cache().Drop(fs.ToNumber(inode), answer);
  };
  if (call->abandoned()) return done(Status(ErrorCode::kCancelled, "its process was killed"));
  Write(fs, call, there, data, done);
}

// Behind the end of the file as it is now, wherever the kernel takes that to be.
void Append(Filesystem& fs, const CallPtr& call, const Writing& writing, const Buffer& data,
            WriteCallback reply) {
  const InodeId inode = writing.handle->inode->id();
  fs.core().appends().Use(inode, [&fs, call, writing, data, inode,
                                  reply = std::move(reply)](const Status& status) {
    if (!status.ok()) return reply(status);
    WhetherAppended(fs, call, writing, data, [&fs, call, writing, data, inode, reply](bool done) {
      if (!done) return AppendNow(fs, call, writing, data, reply);
      fs.core().appends().Done(inode);
      reply(Status::Ok());
      fs.core().takeover()->ChangeEnds(call->number());
    });
  });
}

void WriteOrAppend(Filesystem& fs, const CallPtr& call, const Writing& writing, bool append,
                   const Buffer& data, const WriteCallback& reply) {
  if (append) {
    Append(fs, call, writing, data.Kept(), reply);
  } else {
    Write(fs, call, writing, data, reply);
  }
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
  if (handle->locked) call->Hold(fs.core().locks().Ending());
  const Buffer data = RequestData(PayloadOf(*vector));
  if (data.size() != fuse_buf_size(vector)) {
    call->ReplyErrno(EIO);
    return;
  }
  // A kernel that writes pages back takes the space of the file to be what it was before.
  const bool tells = fs.options().writeback_cache && fi->writepage != 0;
  const uint64_t blocks = tells ? handle->inode->attr().blocks : 0;
  auto reply = [&fs, call, inode = handle->inode, size = data.size(), tells, blocks,
                held = fs.core().BeginKernelWrite(handle->inode->id())](const Status& status) {
    if (!status.ok()) {
      call->Reply(status);
    } else {
      if (tells && inode->attr().blocks != blocks) fs.AttributesMoved(*inode);
      call->ReplyWrite(size);
    }
  };
  if (fi->writepage != 0) {
    handle->inode->WrotePages();
  } else {
    if (data.size() >= kKernelPage) handle->inode->FillsPages();
    handle->Changing(call->context().pid);
  }
  // Pages are written back in nobody's name: whoever changed them has taken the rights already, or,
  // by a mapping, takes none.
  const bool by_process = fi->writepage == 0;
  const RightsLost lost{RequestDropsSetIds(), by_process};
  const Writing writing{handle, static_cast<uint64_t>(offset), lost};
  // Mapped pages go where they belong; the kernel of an exclusive mount knows the size by itself.
  const bool append = (fi->flags & O_APPEND) != 0 && by_process && !fs.options().exclusive;
  if (!handle->inode->MayLose(lost)) return WriteOrAppend(fs, call, writing, append, data, reply);
  fs.DropRights(*call, handle->inode, lost,
                [&fs, call, writing, append, reply, kept = data.Kept()](const Status& status) {
                  if (!status.ok()) return reply(status);
                  WriteOrAppend(fs, call, writing, append, kept, reply);
                });
}

}  // namespace

void AddIoOps(fuse_lowlevel_ops* ops) {
  ops->read = OnRead;
  ops->write_buf = OnWrite;
}

}  // namespace weir::client
