#include "client/vfs/handle_table.h"

#include <algorithm>

namespace weir::client {

Handle::Handle(InodePtr opened, OpenerPtr by, int open_flags)
    : inode(std::move(opened)),
      opener(std::move(by)),
      flags(open_flags),
      direct((open_flags & O_DIRECT) != 0),
      errors_told(inode->ErrorMark()),
      before_(changes()),
      errors_before_(inode->errors(Inode::Hears::kFenced)),
      flushed_(before_) {}

void Handle::Changing(pid_t by) {
  std::lock_guard lock(mutex_);
  ++own_;
  changed_by_ = changed_by_ == kNobody || changed_by_ == by ? by : kSeveral;
}

Handle::Changes Handle::changes() const {
  std::lock_guard lock(mutex_);
  return ChangesLocked();
}

Handle::Changes Handle::ChangesLocked() const {
  return {own_, MayWrite() ? inode->page_writes() : 0};
}

void Handle::Flushed(const Changes& then) {
  std::lock_guard lock(mutex_);
  flushed_.own = std::max(flushed_.own, then.own);
  flushed_.pages = std::max(flushed_.pages, then.pages);
  if (flushed_.own == own_) changed_by_ = kNobody;
}

Handle::AtClose Handle::CloseBy(pid_t closer, const OtherProcess& other_process) const {
  pid_t by = 0;
  {
    std::lock_guard lock(mutex_);
    const Changes now = ChangesLocked();
    if (now == flushed_) return AtClose::kTell;
    if (now.pages != flushed_.pages) return AtClose::kStore;
    by = changed_by_;
  }
  const bool of_other = by > 0 && closer > 0 && other_process(by, closer);
  return of_other ? AtClose::kNothing : AtClose::kStore;
}

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
