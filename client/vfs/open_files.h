// OpenFiles: which inodes this mount holds open at the MDS, so that open-but-unlinked files live on
// and a session can be reclaimed.
//
// RELEASE says "this session holds it open no more", so it must not overtake an OPEN of the same
// inode: releases are sent in batches by Tick, an open that comes before that cancels its release,
// and one that comes while it is on its way waits for the answer.
// Threads: any; callbacks with no lock held.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/vfs/inode_table.h"

namespace weir::client {

class OpenFiles {
 public:
  using SendRelease = std::function<void(const std::vector<InodeId>&, std::function<void()> done)>;

  OpenFiles(InodeTable& inodes, SendRelease send) : inodes_(inodes), send_(std::move(send)) {}

  // Counts an open and runs `ask` as soon as the MDS may be asked. Close takes it back.
  void Open(InodeId inode, std::function<void()> ask);
  // For CREATE, whose inode is known only afterwards: Begin before it is sent, Opened with its
  // answer (inode 0: it failed). False when a release of that inode may have overtaken it: then
  // Open it again.
  uint64_t BeginCreate();
  bool Opened(InodeId inode, uint64_t begun);
  void Close(InodeId inode);
  // The MDS has been told that all these are open, as they were before that was sent. The next Tick
  // releases what is not any more: an earlier RELEASE may have been heard before.
  void ToldOpen(const std::vector<InodeId>& inodes);

  // Sends what has been closed since.
  void Tick();
  [[nodiscard]] std::vector<InodeId> All() const;

 private:
  struct Entry {
    uint64_t opens = 0;
    bool releasing = false;  // a RELEASE is on its way
    std::vector<std::function<void()>> waiting;
  };
  void Released(const std::vector<InodeId>& inodes);

  InodeTable& inodes_;
  const SendRelease send_;
  mutable std::mutex mutex_;
  uint64_t sequence_ = 0;
  std::unordered_map<InodeId, Entry> entries_;
  std::unordered_set<InodeId> closed_;                   // to be released
  std::unordered_map<InodeId, uint64_t> last_releases_;  // while creates are on their way
  uint64_t creates_ = 0;
};

}  // namespace weir::client
