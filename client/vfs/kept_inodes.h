// KeptInodes: what this mount has taken the last name of while its kernel refers to it.
//
// A process may have looked a name up and be about to open what it leads to, or hold it by O_PATH,
// while another one removes or replaces the name. So a removal asks the MDS to keep the inode
// (mds/ns/lingering.h), which is then released when the kernel has forgotten it: mostly at once.
//
// Threads: any; `send` runs in Tick, with no lock held.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "client/vfs/inode_table.h"

namespace weir::client {

class KeptInodes {
 public:
  // Lets the MDS know that the kernel knows them no more; of `blank`, which are among them, this
  // mount has told OSDs nothing, nor will.
  using Send =
      std::function<void(const std::vector<InodeId>& inodes, const std::vector<InodeId>& blank)>;
  KeptInodes(InodeTable& inodes, Send send) : inodes_(inodes), send_(std::move(send)) {}

  // The MDS has answered that it keeps it; before the kernel hears that the name is gone.
  void Keep(InodeId inode);
  // By the InodeTable: the kernel has forgotten one that was watched.
  void Forgotten(const InodePtr& inode) { Forgotten(inode->id(), inode); }
  void Tick();
  // The MDS was told that these are kept, maybe behind their release: that is then sent again.
  void Told(const std::vector<InodeId>& inodes);
  [[nodiscard]] bool Has(InodeId inode) const;
  // Not released yet.
  [[nodiscard]] std::vector<InodeId> All() const;

 private:
  // `was`: what was known of it, or null.
  void Forgotten(InodeId inode, const InodePtr& was);
  struct Gone {
    InodeId id;
    InodePtr was;
  };

  InodeTable& inodes_;
  const Send send_;
  mutable std::mutex mutex_;
  std::unordered_set<InodeId> kept_;
  std::vector<Gone> forgotten_;
};

}  // namespace weir::client
