// What a simulated mount does with files that are open.
#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "tests/crash/cluster/sim_mount.h"

namespace weir::crash {

using client::DirCache;
using client::HandlePtr;

HandlePtr SimMount::MakeHandle(InodeId inode, const Opening& opening,
                               const wire::EntryReply& reply) {
  client::InodePtr opened = core_->inodes().Find(inode);  // pinned, as it is open
  opened->Update(client::FromWire(reply.attr()));
  opened->SeenAtOpen(reply.attr().version());
  opened->AddWriter();
  return std::make_shared<client::Handle>(std::move(opened), opening.opener, O_RDWR);
}

SimMount::Opening SimMount::BeginOpen() {
  const uint64_t epoch = core_->map_epoch();
  return {epoch, core_->classes().Open(0, 0, {}, 0)};
}

bool SimMount::AskAgainWhenHeard(const Status& status, const Opening& opening,
                                 std::function<void()> again) {
  if (status.code() != ErrorCode::kStaleEpoch) return false;
  core_->AwaitEviction(opening.epoch, TimePoint::Max(),
                       [again = std::move(again)](const Status& heard) {
                         if (heard.ok()) again();  // else this mount is gone
                       });
  return true;
}

void SimMount::AskCreate(InodeId parent, const std::string& name, bool exclusive,
                         const Opened& done) {
  const Opening opening = BeginOpen();
  wire::CreateRequest request;
  request.set_epoch(opening.epoch);
  Fill(request.mutable_caller());
  request.set_parent(parent.value);
  request.set_name(name);
  request.set_mode(S_IFREG | 0644);
  request.set_exclusive(exclusive);
  request.set_open_flags(O_RDWR);
  const uint64_t begun = core_->open_files().BeginCreate();
  auto naming = AskName(parent, name);
  auto changing = core_->directories().BeginChange({{DirCache::Kind::kAdd, parent, name}});
  core_->mds().Call<wire::EntryReply>(wire::MDS_CREATE, request, false,
                                      [this, done, begun, changing, naming, opening, parent, name,
                                       exclusive](Result<wire::EntryReply> reply) {
                                        const InodeId id(reply.ok() ? reply->attr().inode() : 0);
                                        const bool settled = core_->open_files().Opened(id, begun);
                                        core_->NamesChanged(changing.get(), reply);
                                        const auto again = [=, this] {
                                          AskCreate(parent, name, exclusive, done);
                                        };
                                        if (AskAgainWhenHeard(reply.status(), opening, again))
                                          return;
                                        if (!reply.ok()) return done(reply.status());
                                        if (settled) {
                                          LearnName(naming, *reply);
                                          if (reply->made()) Find(id)->SetBlank();
                                          return done(MakeHandle(id, opening, *reply));
                                        }
                                        // A release of ours may have overtaken it.
                                        core_->open_files().Open(id, [this, done, id] {
                                          AskOpen(id, done);
                                          core_->open_files().Close(id);  // Opened has counted it
                                        });
                                      });
}

void SimMount::AskOpen(InodeId inode, const Opened& done) {
  const Opening opening = BeginOpen();
  wire::OpenRequest request;
  request.set_epoch(opening.epoch);
  Fill(request.mutable_caller());
  request.set_inode(inode.value);
  request.set_flags(O_RDWR);
  auto answer = [this, done, inode, opening](Result<wire::EntryReply> reply) {
    if (AskAgainWhenHeard(reply.status(), opening, [=, this] { AskOpen(inode, done); })) return;
    if (reply.ok()) return done(MakeHandle(inode, opening, *reply));
    core_->open_files().Close(inode);
    done(reply.status());
  };
  core_->files().TellHeld(Find(inode), [this, request, answer] {
    core_->mds().Call<wire::EntryReply>(wire::MDS_OPEN, request, false, answer);
  });
}

Answer<Result<HandlePtr>> SimMount::Create(InodeId parent, std::string name, bool exclusive) {
  return Ask<Result<HandlePtr>>(
      [this, parent, name, exclusive](auto done) { AskCreate(parent, name, exclusive, done); });
}

Answer<Result<HandlePtr>> SimMount::Open(InodeId inode) {
  return Ask<Result<HandlePtr>>([this, inode](auto done) {
    core_->open_files().Open(inode, [this, inode, done] { AskOpen(inode, done); });
  });
}

Answer<Status> SimMount::Close(HandlePtr handle) {
  return Ask<Status>([this, handle](auto done) {
    core_->files().Close(handle, [this, handle, done](const Status& status) {
      const InodeId id = handle->inode->id();
      handle->inode->RemoveWriter();
      core_->files().WhenStored(id, [this, id] { core_->open_files().Close(id); });
      GiveBack(id);
      done(status);
    });
  });
}

Answer<Status> SimMount::Write(HandlePtr handle, uint64_t offset, Bytes bytes) {
  return Ask<Status>([this, handle, offset, bytes](auto done) {
    const std::span data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    auto kernel_writes = core_->BeginKernelWrite(handle->inode->id());
    handle->Changing(1);
    core_->files().Write(handle, offset, Buffer::Borrowed(data), {},
                         [this, handle, done, kernel_writes](const Status& status) {
                           kernel_.Written(handle->inode->id());
                           done(status);
                         });
  });
}

Answer<Result<Bytes>> SimMount::Read(HandlePtr handle, uint64_t offset, uint64_t length) {
  return Ask<Result<Bytes>>([this, handle, offset, length](auto done) {
    core_->files().Read(handle, offset, length, [done](const Result<client::Segments>& read) {
      if (!read.ok()) return done(read.status());
      size_t size = 0;
      for (const Buffer& segment : *read) size += segment.size();
      Bytes bytes(size, '\0');
      client::CopyTo(*read, reinterpret_cast<uint8_t*>(bytes.data()));
      done(std::move(bytes));
    });
  });
}

Answer<Status> SimMount::Sync(HandlePtr handle) {
  return Ask<Status>([this, handle](auto done) { core_->files().Fsync(handle, false, done); });
}

Answer<Status> SimMount::Truncate(HandlePtr handle, uint64_t size) {
  return Ask<Status>([this, handle, size](auto done) {
    wire::SetAttrRequest request;
    Fill(request.mutable_caller());
    request.set_inode(handle->inode->id().value);
    request.set_size(size);
    request.set_has_handle(true);
    request.set_epoch(core_->map_epoch());
    if (handle->opener->is_fenced()) return done(client::LostError());
    request.set_known_size(handle->inode->size());
    auto send = [this, handle, request, done] {
      core_->mds().Call<wire::EntryReply>(wire::MDS_SETATTR, request, false,
                                          [this, handle, done, asked = core_->leases().Asked()](
                                              const Result<wire::EntryReply>& reply) {
                                            if (reply.code() == ErrorCode::kStaleEpoch) {
                                              return done(client::LostError());
                                            }
                                            if (!reply.ok()) return done(reply.status());
                                            handle->inode->Resized(client::FromWire(reply->attr()));
                                            kernel_.Written(handle->inode->id());
                                            Learn(*reply, asked);
                                            done(Status::Ok());
                                          });
    };
    if (!handle->inode->has_unreported()) return send();
    // What was written goes first, or its report would move the size set here.
    core_->files().Sync(handle->inode, false, [handle, send](const Status& status) {
      if (!status.ok()) handle->inode->RememberError(status);
      send();
    });
  });
}

Answer<Status> SimMount::SetMode(HandlePtr handle, uint32_t mode) {
  return Ask<Status>([this, handle, mode](auto done) {
    client::HeldAttributes change;
    change.mode = mode;
    change.ctime_ns = core_->clock().WallNow().ns;
    wire::SetAttrRequest request;
    Fill(request.mutable_caller());
    const uint32_t caller = request.caller().uid();
    if (core_->files().HoldAttributes(handle->inode, change, caller, {})) return done({});
    request.set_inode(handle->inode->id().value);
    request.set_mode(mode);
    core_->files().Sync(handle->inode, false, [this, handle, request, done](const Status& synced) {
      if (!synced.ok()) handle->inode->RememberError(synced);
      core_->mds().Call<wire::EntryReply>(
          wire::MDS_SETATTR, request, false,
          [this, done, asked = core_->leases().Asked()](const Result<wire::EntryReply>& reply) {
            if (reply.ok()) Learn(*reply, asked);
            done(reply.status());
          });
    });
  });
}

}  // namespace weir::crash
