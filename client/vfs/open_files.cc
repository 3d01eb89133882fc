#include "client/vfs/open_files.h"

namespace weir::client {

void OpenFiles::Open(InodeId inode, std::function<void()> ask) {
  inodes_.Pin(inode);
  {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[inode];
    ++entry.opens;
    closed_.erase(inode);
    if (entry.releasing) {
      entry.waiting.push_back(std::move(ask));
      return;
    }
  }
  ask();
}

uint64_t OpenFiles::BeginCreate() {
  std::lock_guard lock(mutex_);
  ++creates_;
  return sequence_;
}

bool OpenFiles::Opened(InodeId inode, uint64_t begun) {
  if (inode.value != 0) inodes_.Pin(inode);
  std::lock_guard lock(mutex_);
  if (--creates_ == 0 && inode.value == 0) last_releases_.clear();
  if (inode.value == 0) return true;
  Entry& entry = entries_[inode];
  ++entry.opens;
  closed_.erase(inode);
  auto last = last_releases_.find(inode);
  const bool overtaken = entry.releasing || (last != last_releases_.end() && last->second > begun);
  if (creates_ == 0) last_releases_.clear();
  return !overtaken;
}

void OpenFiles::Close(InodeId inode) {
  {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(inode);
    WEIR_CHECK(it != entries_.end() && it->second.opens > 0, "closed an inode that is not open");
    if (--it->second.opens == 0) {
      closed_.insert(inode);
      if (!it->second.releasing) entries_.erase(it);
    }
  }
  inodes_.Unpin(inode);
}

void OpenFiles::ToldOpen(const std::vector<InodeId>& inodes) {
  const std::lock_guard lock(mutex_);
  for (const InodeId inode : inodes) {
    const auto entry = entries_.find(inode);
    if (entry == entries_.end() || entry->second.opens == 0) closed_.insert(inode);
  }
}

void OpenFiles::Tick() {
  std::vector<InodeId> batch;
  {
    std::lock_guard lock(mutex_);
    ++sequence_;
    for (InodeId inode : closed_) {
      Entry& entry = entries_[inode];
      if (entry.releasing) continue;  // stays for the next Tick: that one may have come too early
      entry.releasing = true;
      if (creates_ > 0) last_releases_[inode] = sequence_;
      batch.push_back(inode);
    }
    for (InodeId inode : batch) closed_.erase(inode);
  }
  if (batch.empty()) return;
  send_(batch, [this, batch] { Released(batch); });
}

void OpenFiles::Released(const std::vector<InodeId>& inodes) {
  std::vector<std::function<void()>> ready;
  {
    std::lock_guard lock(mutex_);
    for (InodeId inode : inodes) {
      auto it = entries_.find(inode);
      if (it == entries_.end()) continue;
      it->second.releasing = false;
      for (auto& ask : it->second.waiting) ready.push_back(std::move(ask));
      it->second.waiting.clear();
      if (it->second.opens == 0) entries_.erase(it);
    }
  }
  for (auto& ask : ready) ask();
}

std::vector<InodeId> OpenFiles::All() const {
  std::vector<InodeId> all;
  std::lock_guard lock(mutex_);
  for (const auto& [inode, entry] : entries_) {
    if (entry.opens > 0) all.push_back(inode);
  }
  return all;
}

}  // namespace weir::client
