#include "tests/crash/cluster/sim_mount.h"

#include <sys/stat.h>

#include <functional>
#include <utility>

namespace weir::crash {

using client::Core;
using client::DirCache;
using client::InodePtr;

SimMount::SimMount(World& world, std::string name)
    : world_(world),
      name_(std::move(name)),
      node_(world.network.Node(name_)),
      // Requests go by either of two connections, as if two threads had sent them.
      networks_(
          *node_, 2,
          [prng = Prng(std::hash<std::string>()(name_))]() mutable { return prng.Uniform(0, 1); }),
      kernel_(world.clock) {
  world_.network.Revive(name_);
  Core::Options options;
  options.mds_endpoint = kMdsEndpoint;
  options.client_name = name_;
  options.connect_timeout = Duration::max();
  options.resend_interval = kResendInterval;
  options.ordered_within = std::chrono::seconds(1);
  options.keeps = true;
  options.file_io.write_back.run_bytes = 16 << 10;
  options.file_io.write_back.age_max = std::chrono::seconds(2);
  options.file_io.report_age = std::chrono::seconds(2);
  options.file_io.read_ahead.chunk_bytes = 16 << 10;
  options.forget_here = [this](InodeId inode) {
    while (!core_->names().Take(inode).empty()) {
    }
    kernel_.Forget(inode);
  };
  core_ = std::make_unique<Core>(networks_, world.clock, options);
  core_->names().Enable();
}

Answer<Status> SimMount::Mount() {
  return Ask<Status>([this](auto done) {
    core_->OpenAsync([this, done](const Status& status) {
      if (status.ok()) {
        core_->inodes().Pin(root());
        TickLater();
      }
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
    // What it has lost, being cut off for long, it says; the session is given back all the same.
    core_->StoreAll([this, done](const Status& /*stored*/) {
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
  caller->set_class_id(core_->classes().OfCaller(0, 0, {}, {}).value);
}

// The kernel gives an inode back when its last name was removed here and nobody has it open, and
// none else while the mount lives.
Entry SimMount::Learn(const wire::EntryReply& reply, uint64_t asked) {
  const InodeId id(reply.attr().inode());
  const InodePtr inode = core_->inodes().Lookup(id);
  const client::FileAttr attr = inode->Update(client::FromWire(reply.attr()));
  core_->leases().Learn(inode, reply, asked);
  KeepSize(inode);
  return {id, attr.size};
}

void SimMount::KeepSize(const InodePtr& inode) {
  if (inode->has_writers() || !core_->leases().MayAnswer(*inode)) return;
  kernel_.KeepSize(inode->id(), inode->size(), core_->leases().Trust());
}

InodePtr SimMount::Find(InodeId inode) {
  const InodePtr known = core_->inodes().Find(inode);
  return known != nullptr ? known : std::make_shared<client::Inode>(inode);
}

SimMount::Naming SimMount::AskName(InodeId directory, const std::string& name) {
  const InodePtr parent = Find(directory);
  return {parent, name, core_->directories().Ask(directory), core_->names().Asked(*parent),
          core_->leases().Asked()};
}

Entry SimMount::LearnName(const Naming& naming, const wire::EntryReply& reply) {
  if (naming.asking != nullptr) core_->directories().Learn(*naming.asking, naming.name, reply);
  const Entry entry = Learn(reply, naming.asked);
  KeepName(*naming.directory, naming.name, entry.inode, naming.names_asked);
  return entry;
}

void SimMount::KeepName(const client::Inode& directory, const std::string& name, InodeId inode,
                        uint64_t names_asked) {
  const Duration keep = core_->names().Give(directory, name, names_asked);
  if (keep > Duration::zero()) kernel_.KeepName(directory.id(), name, inode, keep);
}

bool SimMount::LookHere(InodeId parent, const std::string& name, const wire::Caller& caller,
                        Entry* found) {
  if (const auto inode = kernel_.Name(parent, name)) {
    *found = {*inode, 0};
    return true;
  }
  const InodePtr directory = Find(parent);
  const uint64_t names_asked = core_->names().Asked(*directory);
  const DirCache::Look look = core_->directories().Find(parent, name, caller);
  if (look.kind == DirCache::Look::Kind::kAskMds) return false;
  if (look.kind == DirCache::Look::Kind::kAbsent) return true;
  const InodePtr known = core_->inodes().Find(look.attr.inode);
  const bool other = look.kind == DirCache::Look::Kind::kOther;
  if (other && (known == nullptr || !core_->leases().MayAnswer(*known))) return false;
  *found = {look.attr.inode, look.attr.size};
  KeepName(*directory, name, look.attr.inode, names_asked);
  return true;
}

void SimMount::AskForLease(wire::NameRequest request) {
  DirCache& directories = core_->directories();
  const InodePtr directory = Find(InodeId(request.parent()));
  if (!directories.Wants(directory->id(), core_->leases().NamesOf(*directory) == 0)) return;
  request.set_name(".");
  core_->mds().Call<wire::EntryReply>(
      wire::MDS_LOOKUP, request, true,
      [this, directory, asking = directories.Ask(InodeId()),
       asked = core_->leases().Asked()](const Result<wire::EntryReply>& reply) {
        if (!reply.ok() || asking == nullptr) return;
        core_->directories().Learn(*asking, ".", *reply);
        directory->Update(client::FromWire(reply->attr()));
        core_->leases().Learn(directory, *reply, asked);
      });
}

Answer<Result<Entry>> SimMount::Lookup(InodeId parent, std::string name) {
  return Ask<Result<Entry>>([this, parent, name](auto done) {
    wire::NameRequest request;
    Fill(request.mutable_caller());
    request.set_parent(parent.value);
    request.set_name(name);
    Entry found;
    if (!kernel_.Name(parent, name).has_value()) AskForLease(request);
    if (LookHere(parent, name, request.caller(), &found)) return done(found);
    core_->mds().Call<wire::EntryReply>(
        wire::MDS_LOOKUP, request, true,
        [this, done, naming = AskName(parent, name)](Result<wire::EntryReply> reply) {
          if (reply.code() == ErrorCode::kNotFound) return done(Entry{});
          if (!reply.ok()) return done(reply.status());
          done(LearnName(naming, *reply));
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
    auto naming = AskName(parent, name);
    auto changing = directories.BeginChange({{DirCache::Kind::kAdd, parent, name}});
    core_->mds().Call<wire::EntryReply>(
        wire::MDS_MKNOD, request, false,
        [this, done, naming, changing](Result<wire::EntryReply> reply) {
          core_->NamesChanged(changing.get(), reply);
          if (!reply.ok()) return done(reply.status());
          done(LearnName(naming, *reply));
        });
  });
}

Answer<Status> SimMount::Remove(InodeId parent, std::string name, bool directory) {
  return Ask<Status>([this, parent, name, directory](auto done) {
    wire::NameRequest request;
    Fill(request.mutable_caller());
    request.set_parent(parent.value);
    request.set_name(name);
    request.set_keep(true);
    auto changing = core_->directories().BeginChange({{DirCache::Kind::kRemove, parent, name}});
    core_->mds().Call<wire::TouchedReply>(
        directory ? wire::MDS_RMDIR : wire::MDS_UNLINK, request, false,
        [this, done, changing, parent, name](const Result<wire::TouchedReply>& reply) {
          core_->NamesChanged(changing.get(), reply);
          if (reply.ok()) kernel_.Removed(parent, name);
          if (reply.ok() && reply->kept() != 0) {
            core_->kept().Keep(InodeId(reply->kept()));
            GiveBack(InodeId(reply->kept()));
          }
          done(reply.status());
        });
  });
}

void SimMount::GiveBack(InodeId inode) {
  if (core_->kept().Has(inode) && !Find(inode)->has_writers()) {
    core_->inodes().Forget(inode, UINT64_MAX);
  }
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
    const bool uncovered = core_->names().Moves(from, old_name, *Find(to), new_name);
    core_->mds().Call<wire::TouchedReply>(wire::MDS_RENAME, request, false,
                                          [this, done, changing, from, old_name, to, new_name,
                                           uncovered](const Result<wire::TouchedReply>& reply) {
                                            if (reply.ok() && reply->moved_size() > 0) {
                                              core_->directories().LearnMoved(
                                                  *changing, to, new_name,
                                                  InodeId(reply->moved(0).inode()));
                                            }
                                            core_->NamesChanged(changing.get(), reply);
                                            if (reply.ok())
                                              kernel_.Renamed(from, old_name, to, new_name);
                                            if (uncovered) kernel_.Removed(to, new_name);
                                            done(reply.status());
                                          });
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

Answer<Result<std::string>> SimMount::GetXattr(InodeId inode, std::string name) {
  return Ask<Result<std::string>>([this, inode, name](auto done) {
    wire::XattrRequest request;
    Fill(request.mutable_caller());
    request.set_inode(inode.value);
    request.set_name(name);
    core_->mds().Call<wire::XattrReply>(wire::MDS_GETXATTR, request, true,
                                        [done](const Result<wire::XattrReply>& reply) {
                                          if (!reply.ok()) return done(reply.status());
                                          done(reply->value());
                                        });
  });
}

Answer<Result<uint64_t>> SimMount::SizeOf(InodeId id) {
  return Ask<Result<uint64_t>>([this, id](auto done) {
    if (const auto size = kernel_.Size(id)) return done(*size);
    const InodePtr inode = Find(id);
    if (core_->leases().MayAnswer(*inode)) {
      KeepSize(inode);
      return done(inode->size());
    }
    wire::InodeRequest request;
    Fill(request.mutable_caller());
    request.set_inode(id.value);
    core_->mds().Call<wire::EntryReply>(
        wire::MDS_GETATTR, request, true,
        [this, done, asked = core_->leases().Asked()](Result<wire::EntryReply> reply) {
          if (!reply.ok()) return done(reply.status());
          const Entry entry = Learn(*reply, asked);
          done(Find(entry.inode)->size());
        });
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

}  // namespace weir::crash
