// ClosedFiles: files whose last close did not wait for what was written to them, until that is
// stored and reported.
//
// A file that was made here and is not stored yet is known by its name, so that a rename waits for
// what it moves and for nothing else. One of which no name is known, as it was there before, may
// have any.
//
// Pure. Threads: not safe; under the lock of its owner.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/vfs/inode_table.h"

namespace weir::client {

class ClosedFiles {
 public:
  using Waiters = std::vector<std::function<void()>>;

  void Add(const Inode& inode);
  // `then` runs when that file is taken. False: it is not among them.
  bool Wait(InodeId inode, std::function<void()>* then);
  // It is stored; those who waited for it.
  Waiters Take(InodeId inode);
  // All of them, as the session is lost.
  std::vector<Waiters> TakeAll();
  [[nodiscard]] bool Has(InodeId inode) const { return files_.contains(inode); }
  [[nodiscard]] size_t size() const { return files_.size(); }
  // Whether there is any of MayHave.
  [[nodiscard]] bool AnyMayHave(const MadeName& name) const {
    return !nameless_.empty() || named_.contains(name);
  }
  // What has that name, and what may have it.
  [[nodiscard]] std::vector<InodeId> MayHave(const MadeName& name) const;

 private:
  struct File {
    std::optional<MadeName> name;
    Waiters waiters;
  };
  std::unordered_map<InodeId, File> files_;
  std::map<MadeName, InodeId> named_;
  std::set<InodeId> nameless_;
};

}  // namespace weir::client
