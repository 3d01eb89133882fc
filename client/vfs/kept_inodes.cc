#include "client/vfs/kept_inodes.h"

#include <utility>

namespace weir::client {

void KeptInodes::Keep(InodeId inode) {
  {
    const std::lock_guard lock(mutex_);
    kept_.insert(inode);
  }
  if (!inodes_.Watch(inode)) Forgotten(inode, nullptr);
}

void KeptInodes::Forgotten(InodeId inode, const InodePtr& was) {
  const std::lock_guard lock(mutex_);
  if (kept_.erase(inode) > 0) forgotten_.push_back({inode, was});
}

void KeptInodes::Tick() {
  std::vector<Gone> forgotten;
  {
    const std::lock_guard lock(mutex_);
    forgotten = std::exchange(forgotten_, {});
  }
  if (forgotten.empty()) return;
  std::vector<InodeId> inodes, blank;
  for (const Gone& gone : forgotten) {
    inodes.push_back(gone.id);
    // What is still in the table may be written to.
    const bool is_blank = gone.was != nullptr && gone.was->is_blank();
    if (is_blank && inodes_.Find(gone.id) == nullptr) blank.push_back(gone.id);
  }
  send_(inodes, blank);
}

void KeptInodes::Told(const std::vector<InodeId>& inodes) {
  const std::lock_guard lock(mutex_);
  for (const InodeId inode : inodes) {
    if (!kept_.contains(inode)) forgotten_.push_back({inode, nullptr});
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
