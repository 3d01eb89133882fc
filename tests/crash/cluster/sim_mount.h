// A mount of the simulated cluster: the real client (client/vfs/core.h) on a machine of its own,
// driven as the FUSE operations drive it, with no kernel above that remembers anything.
// Threads: one.
#pragma once

#include <memory>
#include <string>

#include "client/vfs/core.h"
#include "common/wire/mds.pb.h"
#include "tests/crash/cluster/machines.h"
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

  [[nodiscard]] InodeId root() { return core_->mds().root(); }
  // Inode 0: there is no such name.
  Answer<Result<Entry>> Lookup(InodeId parent, std::string name);
  Answer<Result<Entry>> Make(InodeId parent, std::string name, uint32_t mode);
  Answer<Status> Remove(InodeId parent, std::string name, bool directory);
  Answer<Status> Rename(InodeId from, std::string old_name, InodeId to, std::string new_name);
  Answer<Status> SetXattr(InodeId inode, std::string name, std::string value);
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

 private:
  template <typename T>
  Answer<T> Ask(typename Answer<T>::Begin begin);
  void TickLater();
  void Fill(wire::Caller* caller) const;
  Entry Learn(const wire::EntryReply& reply);
  client::HandlePtr MakeHandle(InodeId inode, const wire::EntryReply& reply);
  void AskForLease(wire::NameRequest request);

  World& world_;
  const std::string name_;
  std::unique_ptr<net::Network> node_;
  std::unique_ptr<client::Core> core_;
  client::OpenerPtr opener_;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace weir::crash
