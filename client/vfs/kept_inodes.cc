#include "client/vfs/kept_inodes.h"

#include <utility>

namespace weir::client {

void KeptInodes::Keep(InodeId inode) {
  {
    const std::lock_guard lock(mutex_);
    kept_.insert(inode);
  }
  if (!inodes_.Watch(inode)) Forgotten(inode);
}

void KeptInodes::Forgotten(InodeId inode) {
  const std::lock_guard lock(mutex_);
  if (kept_.erase(inode) > 0) forgotten_.push_back(inode);
}

void KeptInodes::Tick() {
  std::vector<InodeId> forgotten;
  {
    const std::lock_guard lock(mutex_);
    forgotten = std::exchange(forgotten_, {});
  }
  if (!forgotten.empty()) send_(forgotten);
}

void KeptInodes::Told(const std::vector<InodeId>& inodes) {
  const std::lock_guard lock(mutex_);
  for (const InodeId inode : inodes) {
    if (!kept_.contains(inode)) forgotten_.push_back(inode);
  }
}

bool KeptInodes::Has(InodeId inode) const {
  const std::lock_guard lock(mutex_);
  return kept_.contains(inode);
}

std::vector<InodeId> KeptInodes::All() const {
  const std::lock_guard lock(mutex_);
  return {kept_.begin(), kept_.end()};
}

}  // namespace weir::client
