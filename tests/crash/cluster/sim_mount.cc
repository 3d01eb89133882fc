#include "tests/crash/cluster/sim_mount.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

namespace weir::crash {

using client::Core;
using client::DirCache;
using client::HandlePtr;
using client::InodePtr;

SimMount::SimMount(World& world, std::string name)
    : world_(world), name_(std::move(name)), node_(world.network.Node(name_)) {
  world_.network.Revive(name_);
  Core::Options options;
  options.mds_endpoint = kMdsEndpoint;
  options.client_name = name_;
  options.connect_timeout = Duration::max();
  options.file_io.write_back.run_bytes = 16 << 10;
  options.file_io.write_back.age_max = std::chrono::seconds(2);
  options.file_io.report_age = std::chrono::seconds(2);
  options.file_io.read_ahead.chunk_bytes = 16 << 10;
  core_ = std::make_unique<Core>(*node_, world.clock, options);
  opener_ = core_->classes().Open(0, 0, {}, 0);
}

template <typename T>
Answer<T> SimMount::Ask(typename Answer<T>::Begin begin) {
  return Answer<T>(
      [this](std::function<void()> task) { world_.After(Duration(0), std::move(task)); },
      std::move(begin));
}

Answer<Status> SimMount::Mount() {
  return Ask<Status>([this](auto done) {
    core_->OpenAsync([this, done](const Status& status) {
      if (status.ok()) TickLater();
      done(status);
    });
  });
}

void SimMount::TickLater() {
  world_.After(std::chrono::milliseconds(100), [this, alive = std::weak_ptr(life_)] {
    if (alive.expired()) return;
    core_->Tick();
    TickLater();
  });
}

Answer<Status> SimMount::Unmount() {
  return Ask<Status>([this](auto done) {
    core_->files().SyncAll([this, done] {
      core_->mds().CallRaw(wire::MDS_CLOSE_SESSION, wire::Empty(), false,
                           [done](const Result<net::Reply>& reply) { done(reply.status()); });
    });
  });
}

void SimMount::Crash() {
  if (core_ == nullptr) return;
  world_.network.Kill(name_);
  life_.reset();
  core_->Abandon();
  core_.reset();
}

void SimMount::Fill(wire::Caller* caller) const {
  caller->set_class_id(core_->classes().OfCaller(0, 0, {}, "").value);
}

// The kernel would keep the entry for a while; here it forgets it at once.
Entry SimMount::Learn(const wire::EntryReply& reply) {
  const InodeId id(reply.attr().inode());
  const InodePtr inode = core_->inodes().Lookup(id);
  const client::FileAttr attr = inode->Update(client::FromWire(reply.attr()));
  core_->inodes().Forget(id, 1);
  return {id, attr.size};
}

void SimMount::AskForLease(wire::NameRequest request) {
  DirCache& directories = core_->directories();
  if (!directories.Wants(InodeId(request.parent()))) return;
  request.set_name(".");
  core_->mds().Call<wire::EntryReply>(
      wire::MDS_LOOKUP, request, true,
      [&directories, asking = directories.Ask(InodeId())](const Result<wire::EntryReply>& reply) {
        if (reply.ok() && asking != nullptr) directories.Learn(*asking, ".", *reply);
      });
}

Answer<Result<Entry>> SimMount::Lookup(InodeId parent, std::string name) {
  return Ask<Result<Entry>>([this, parent, name](auto done) {
    wire::NameRequest request;
    Fill(request.mutable_caller());
    request.set_parent(parent.value);
    request.set_name(name);
    DirCache& directories = core_->directories();
    const DirCache::Look look = directories.Find(parent, name, request.caller());
    if (look.kind == DirCache::Look::Kind::kAbsent) return done(Entry{});
    if (look.kind == DirCache::Look::Kind::kDirectory) {
      return done(Entry{look.attr.inode, look.attr.size});
    }
    AskForLease(request);
    core_->mds().Call<wire::EntryReply>(
        wire::MDS_LOOKUP, request, true,
        [this, done, name, asking = directories.Ask(parent)](Result<wire::EntryReply> reply) {
          if (reply.code() == ErrorCode::kNotFound) return done(Entry{});
          if (!reply.ok()) return done(reply.status());
          if (asking != nullptr) core_->directories().Learn(*asking, name, *reply);
          done(Learn(*reply));
        });
  });
}

Answer<Result<Entry>> SimMount::Make(InodeId parent, std::string name, uint32_t mode) {
  return Ask<Result<Entry>>([this, parent, name, mode](auto done) {
    wire::CreateRequest request;
    Fill(request.mutable_caller());
    request.set_parent(parent.value);
    request.set_name(name);
    request.set_mode(mode);
    request.set_exclusive(true);
    DirCache& directories = core_->directories();
    auto asking = directories.Ask(parent);
    auto changing = directories.BeginChange({{DirCache::Kind::kAdd, parent, name}});
    core_->mds().Call<wire::EntryReply>(
        wire::MDS_MKNOD, request, false,
        [this, done, name, asking, changing](Result<wire::EntryReply> reply) {
          if (!reply.ok()) return done(reply.status());
          if (asking != nullptr) core_->directories().Learn(*asking, name, *reply);
          done(Learn(*reply));
        });
  });
}

Answer<Status> SimMount::Remove(InodeId parent, std::string name, bool directory) {
  return Ask<Status>([this, parent, name, directory](auto done) {
    wire::NameRequest request;
    Fill(request.mutable_caller());
    request.set_parent(parent.value);
    request.set_name(name);
    auto changing = core_->directories().BeginChange({{DirCache::Kind::kRemove, parent, name}});
    core_->mds().CallRaw(
        directory ? wire::MDS_RMDIR : wire::MDS_UNLINK, request, false,
        [done, changing](const Result<net::Reply>& reply) { done(reply.status()); });
  });
}

Answer<Status> SimMount::Rename(InodeId from, std::string old_name, InodeId to,
                                std::string new_name) {
  return Ask<Status>([this, from, old_name, to, new_name](auto done) {
    wire::RenameRequest request;
    Fill(request.mutable_caller());
    request.set_old_parent(from.value);
    request.set_old_name(old_name);
    request.set_new_parent(to.value);
    request.set_new_name(new_name);
    auto changing = core_->directories().BeginChange({{DirCache::Kind::kRemove, from, old_name},
                                                      {DirCache::Kind::kAdd, from, old_name},
                                                      {DirCache::Kind::kRemove, to, new_name},
                                                      {DirCache::Kind::kAdd, to, new_name}});
    core_->mds().CallRaw(
        wire::MDS_RENAME, request, false,
        [done, changing](const Result<net::Reply>& reply) { done(reply.status()); });
  });
}

Answer<Status> SimMount::SetXattr(InodeId inode, std::string name, std::string value) {
  return Ask<Status>([this, inode, name, value](auto done) {
    wire::XattrRequest request;
    Fill(request.mutable_caller());
    request.set_inode(inode.value);
    request.set_name(name);
    request.set_value(value);
    core_->mds().CallRaw(wire::MDS_SETXATTR, request, false,
                         [done](const Result<net::Reply>& reply) { done(reply.status()); });
  });
}

Answer<Result<std::vector<std::string>>> SimMount::List(InodeId directory) {
  using Names = std::vector<std::string>;
  return Ask<Result<Names>>([this, directory](auto done) {
    wire::ReaddirRequest request;
    Fill(request.mutable_caller());
    request.set_inode(directory.value);
    request.set_max_entries(1000);
    core_->mds().Call<wire::ReaddirReply>(wire::MDS_READDIR, request, true,
                                          [done](Result<wire::ReaddirReply> reply) {
                                            if (!reply.ok()) return done(reply.status());
                                            Names names;
                                            for (const auto& entry : reply->entries()) {
                                              names.push_back(entry.name());
                                            }
                                            done(std::move(names));
                                          });
  });
}

HandlePtr SimMount::MakeHandle(InodeId inode, const wire::EntryReply& reply) {
  auto handle = std::make_shared<client::Handle>();
  handle->inode = core_->inodes().Find(inode);  // pinned, as it is open
  handle->inode->Update(client::FromWire(reply.attr()));
  handle->inode->SeenAtOpen(reply.attr().version());
  handle->opener = opener_;
  handle->flags = O_RDWR;
  return handle;
}

Answer<Result<HandlePtr>> SimMount::Create(InodeId parent, std::string name, bool exclusive) {
  return Ask<Result<HandlePtr>>([this, parent, name, exclusive](auto done) {
    wire::CreateRequest request;
    Fill(request.mutable_caller());
    request.set_parent(parent.value);
    request.set_name(name);
    request.set_mode(S_IFREG | 0644);
    request.set_exclusive(exclusive);
    request.set_open_flags(O_RDWR);
    const uint64_t begun = core_->open_files().BeginCreate();
    auto changing = core_->directories().BeginChange({{DirCache::Kind::kAdd, parent, name}});
    core_->mds().Call<wire::EntryReply>(
        wire::MDS_CREATE, request, false,
        [this, done, begun, changing](Result<wire::EntryReply> reply) {
          const InodeId id(reply.ok() ? reply->attr().inode() : 0);
          const bool settled = core_->open_files().Opened(id, begun);
          if (!reply.ok()) return done(reply.status());
          if (settled) return done(MakeHandle(id, *reply));
          // A release of ours may have overtaken it.
          wire::OpenRequest again;
          again.set_inode(id.value);
          core_->open_files().Open(id, [this, done, id, again] {
            core_->mds().Call<wire::EntryReply>(
                wire::MDS_OPEN, again, false, [this, done, id](Result<wire::EntryReply> opened) {
                  core_->open_files().Close(id);  // Opened has counted it
                  if (opened.ok()) return done(MakeHandle(id, *opened));
                  core_->open_files().Close(id);
                  done(opened.status());
                });
          });
        });
  });
}

Answer<Result<HandlePtr>> SimMount::Open(InodeId inode) {
  return Ask<Result<HandlePtr>>([this, inode](auto done) {
    wire::OpenRequest request;
    Fill(request.mutable_caller());
    request.set_inode(inode.value);
    request.set_flags(O_RDWR);
    core_->open_files().Open(inode, [this, done, inode, request] {
      core_->mds().Call<wire::EntryReply>(wire::MDS_OPEN, request, false,
                                          [this, done, inode](Result<wire::EntryReply> reply) {
                                            if (reply.ok()) return done(MakeHandle(inode, *reply));
                                            core_->open_files().Close(inode);
                                            done(reply.status());
                                          });
    });
  });
}

Answer<Status> SimMount::Close(HandlePtr handle) {
  return Ask<Status>([this, handle](auto done) {
    core_->files().Sync(handle->inode, true, [this, handle, done](const Status& status) {
      core_->open_files().Close(handle->inode->id());
      done(status);
    });
  });
}

Answer<Status> SimMount::Write(HandlePtr handle, uint64_t offset, Bytes bytes) {
  return Ask<Status>([this, handle, offset, bytes](auto done) {
    const std::span data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    auto kernel_writes = core_->BeginKernelWrite(handle->inode->id());
    core_->files().Write(handle, offset, data, false,
                         [done, kernel_writes](const Status& status) { done(status); });
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
  return Ask<Status>([this, handle](auto done) { core_->files().Sync(handle->inode, true, done); });
}

Answer<Status> SimMount::Truncate(HandlePtr handle, uint64_t size) {
  return Ask<Status>([this, handle, size](auto done) {
    wire::SetAttrRequest request;
    Fill(request.mutable_caller());
    request.set_inode(handle->inode->id().value);
    request.set_size(size);
    request.set_has_handle(true);
    request.set_known_size(handle->inode->size());
    auto send = [this, handle, request, done] {
      core_->mds().Call<wire::EntryReply>(wire::MDS_SETATTR, request, false,
                                          [this, handle, done](Result<wire::EntryReply> reply) {
                                            if (!reply.ok()) return done(reply.status());
                                            handle->inode->Resized(client::FromWire(reply->attr()));
                                            Learn(*reply);
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

}  // namespace weir::crash
