#include "client/vfs/handle_table.h"

namespace weir::client {

uint64_t HandleTable::Add(HandlePtr handle) {
  std::lock_guard lock(mutex_);
  handles_.emplace(++last_, std::move(handle));
  return last_;
}

void HandleTable::Restore(uint64_t number, HandlePtr handle) {
  std::lock_guard lock(mutex_);
  handles_.emplace(number, std::move(handle));
}

void HandleTable::SetLast(uint64_t last) {
  std::lock_guard lock(mutex_);
  last_ = last;
}

HandlePtr HandleTable::Find(uint64_t number) const {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(number);
  return it == handles_.end() ? nullptr : it->second;
}

HandlePtr HandleTable::Remove(uint64_t number) {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(number);
  if (it == handles_.end()) return nullptr;
  HandlePtr handle = std::move(it->second);
  handles_.erase(it);
  return handle;
}

}  // namespace weir::client
