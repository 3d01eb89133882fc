// A mount of the simulated cluster: the real client (client/vfs/core.h) on a machine of its own,
// driven as the FUSE operations drive it, with a kernel above that remembers what it may.
// Threads: one.
#pragma once

#include <memory>
#include <string>

#include "client/vfs/core.h"
#include "common/wire/mds.pb.h"
#include "tests/crash/cluster/machines.h"
#include "tests/crash/cluster/sim_kernel.h"
#include "tests/crash/cluster/task.h"

namespace weir::crash {

struct Entry {
  InodeId inode;
  uint64_t size = 0;
};

// Of a read: the bytes, fewer at the end of the file.
using Bytes = std::string;

class SimMount {
 public:
  SimMount(World& world, std::string name);
  ~SimMount() { Crash(); }

  Answer<Status> Mount();
  // Writes back everything and gives the session back.
  Answer<Status> Unmount();
  void Crash();
  [[nodiscard]] uint64_t session() const { return core_ == nullptr ? 0 : core_->session(); }
  // Of the map that it obeys.
  [[nodiscard]] uint64_t epoch() const { return core_ == nullptr ? 0 : core_->map_epoch(); }
  // Of what it was told early (client/remote/ordered_names.h) some is lost, as the MDS has gone on
  // without it.
  [[nodiscard]] bool lost_names() const { return core_ != nullptr && core_->ordered().lost(); }
  [[nodiscard]] uint64_t last_order() const { return core_->ordered().last(); }
  // As far as it has heard.
  [[nodiscard]] bool IsDurable(uint64_t order) const {
    return core_ == nullptr || (!core_->ordered().lost() && core_->ordered().IsDurable(order));
  }

  [[nodiscard]] InodeId root() { return core_->mds().root(); }
  // Inode 0: there is no such name.
  Answer<Result<Entry>> Lookup(InodeId parent, std::string name);
  Answer<Result<Entry>> Make(InodeId parent, std::string name, uint32_t mode);
  Answer<Status> Remove(InodeId parent, std::string name, bool directory);
  Answer<Status> Rename(InodeId from, std::string old_name, InodeId to, std::string new_name);
  Answer<Status> SetXattr(InodeId inode, std::string name, std::string value);
  Answer<Result<std::string>> GetXattr(InodeId inode, std::string name);
  Answer<Result<uint64_t>> SizeOf(InodeId inode);
  // Every name in a directory.
  Answer<Result<std::vector<std::string>>> List(InodeId directory);

  Answer<Result<client::HandlePtr>> Create(InodeId parent, std::string name, bool exclusive);
  Answer<Result<client::HandlePtr>> Open(InodeId inode);
  // Flush and release, as close(2) does them.
  Answer<Status> Close(client::HandlePtr handle);
  Answer<Status> Write(client::HandlePtr handle, uint64_t offset, Bytes bytes);
  Answer<Result<Bytes>> Read(client::HandlePtr handle, uint64_t offset, uint64_t length);
  Answer<Status> Sync(client::HandlePtr handle);
  Answer<Status> Truncate(client::HandlePtr handle, uint64_t size);
  Answer<Status> SetMode(client::HandlePtr handle, uint32_t mode);

 private:
  template <typename T>
  Answer<T> Ask(typename Answer<T>::Begin begin);
  void TickLater();
  void Fill(wire::Caller* caller) const;
  // What a reply tells, for the kernel to remember as long as it may.
  Entry Learn(const wire::EntryReply& reply, uint64_t asked);
  void KeepSize(const client::InodePtr& inode);
  void GiveBack(InodeId inode);
  struct Naming {
    client::InodePtr directory;
    std::string name;
    std::shared_ptr<client::DirCache::Asking> asking;
    uint64_t names_asked = 0, asked = 0;
  };
  Naming AskName(InodeId directory, const std::string& name);
  Entry LearnName(const Naming& naming, const wire::EntryReply& reply);
  void KeepName(const client::Inode& directory, const std::string& name, InodeId inode,
                uint64_t names_asked);
  bool LookHere(InodeId parent, const std::string& name, const wire::Caller& caller, Entry* found);
  client::InodePtr Find(InodeId inode);
  // Who opens, and under which map.
  struct Opening {
    uint64_t epoch;
    client::OpenerPtr opener;
  };
  Opening BeginOpen();
  using Opened = std::function<void(Result<client::HandlePtr>)>;
  void AskCreate(InodeId parent, const std::string& name, bool exclusive, const Opened& done);
  void AskOpen(InodeId inode, const Opened& done);  // counted as open already
  // False: the answer does not ask for that.
  bool AskAgainWhenHeard(const Status& status, const Opening& opening, std::function<void()> again);
  client::HandlePtr MakeHandle(InodeId inode, const Opening& opening,
                               const wire::EntryReply& reply);
  void AskForLease(wire::NameRequest request);

  World& world_;
  const std::string name_;
  std::unique_ptr<net::Network> node_;
  client::ReactorNetworks networks_;
  std::unique_ptr<client::Core> core_;
  SimKernel kernel_;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

template <typename T>
Answer<T> SimMount::Ask(typename Answer<T>::Begin begin) {
  return Answer<T>(
      [this](std::function<void()> task) { world_.After(Duration(0), std::move(task)); },
      std::move(begin));
}

}  // namespace weir::crash
