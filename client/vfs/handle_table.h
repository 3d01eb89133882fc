// Handle: one open of a regular file. HandleTable: the numbers the kernel carries for them.
// Threads: any. A handle lives until its last user lets go, also after Remove.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "client/data/read_ahead.h"
#include "client/vfs/caller_classes.h"
#include "client/vfs/inode_table.h"

namespace weir::client {

struct Handle {
  InodePtr inode;
  OpenerPtr opener;
  int flags = 0;
  bool direct = false;  // opened with O_DIRECT
  ReadAhead::Stream stream;
  // A predecessor of this process had not stored what was written: the next fsync or close tells.
  std::atomic<bool> lost{false};
};
using HandlePtr = std::shared_ptr<Handle>;

class HandleTable {
 public:
  uint64_t Add(HandlePtr handle);
  // Under a number that a predecessor of this process gave out; SetLast: the last of those.
  void Restore(uint64_t number, HandlePtr handle);
  void SetLast(uint64_t last);
  [[nodiscard]] HandlePtr Find(uint64_t number) const;
  HandlePtr Remove(uint64_t number);

 private:
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, HandlePtr> handles_;
};

}  // namespace weir::client
