#include "tools/passthrough/inode_table.h"

#include <unistd.h>

namespace weir::passthrough {
namespace {

constexpr uint64_t kRootNumber = 1;  // FUSE_ROOT_ID.

uint64_t NumberOf(const Inode* inode) {
  return reinterpret_cast<uintptr_t>(inode);
}

}  // namespace

Inode::~Inode() {
  close(fd);
}

Inode* InodeTable::Get(uint64_t number) {
  if (number == kRootNumber) return &root_;
  // The kernel only sends numbers that Lookup made of pointers.
  return reinterpret_cast<Inode*>(number);  // NOLINT(performance-no-int-to-ptr)
}

uint64_t InodeTable::Lookup(int path_fd, const struct stat& stat) {
  auto fresh = std::make_unique<Inode>(path_fd);  // Closes path_fd if the file is known already.
  const Key key{stat.st_dev, stat.st_ino};
  std::lock_guard lock(mutex_);
  auto [it, inserted] = inodes_.try_emplace(key, nullptr);
  if (inserted) {
    it->second = std::move(fresh);
    keys_.emplace(NumberOf(it->second.get()), key);
  }
  ++it->second->lookups;
  return NumberOf(it->second.get());
}

void InodeTable::Forget(uint64_t number, uint64_t count) {
  if (number == kRootNumber) return;
  std::lock_guard lock(mutex_);
  Inode* inode = Get(number);
  inode->lookups -= count < inode->lookups ? count : inode->lookups;
  if (inode->lookups > 0) return;
  const auto key = keys_.find(number);
  inodes_.erase(key->second);
  keys_.erase(key);
}

}  // namespace weir::passthrough
