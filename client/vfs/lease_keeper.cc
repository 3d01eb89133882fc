#include "client/vfs/lease_keeper.h"

#include <utility>

namespace weir::client {

LeaseKeeper::LeaseKeeper(FileLeases& leases, InodeTable& inodes, Hooks hooks)
    : leases_(leases), inodes_(inodes), hooks_(std::move(hooks)) {
  if (hooks_.forget_pages != nullptr) thread_ = std::thread([this] { Run(); });
}

LeaseKeeper::~LeaseKeeper() {
  Stop();
}

void LeaseKeeper::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  added_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LeaseKeeper::Add(Task task) {
  if (hooks_.forget_pages == nullptr) {
    if (task.flush) GiveBack(task);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    // Forgetting once more will do for all that comes until then.
    if (!task.flush && !forgets_.insert(task.inode->id()).second) return;
    tasks_.push_back(std::move(task));
  }
  added_.notify_one();
}

void LeaseKeeper::Recalled(uint64_t seq, const std::vector<InodeId>& recalled) {
  const uint64_t epoch = leases_.epoch();
  std::vector<InodeId> at_once;
  for (const InodeId id : recalled) {
    {
      const std::lock_guard lock(mutex_);
      if (giving_back_.contains(id)) continue;
    }
    const InodePtr inode = inodes_.Find(id);
    if (inode == nullptr) {
      at_once.push_back(id);
      continue;
    }
    const bool written = leases_.Revoke(inode) || inode->has_unreported();
    if (written) {
      const std::lock_guard lock(mutex_);
      giving_back_.insert(id);
    } else {
      at_once.push_back(id);
    }
    Add({inode, written, written, epoch, seq});
  }
  if (!at_once.empty()) hooks_.yield(epoch, seq, at_once, [] {});
}

void LeaseKeeper::Lost(const std::vector<InodeId>& written, const std::vector<InodeId>& open) {
  for (const InodeId id : written) {
    if (InodePtr inode = inodes_.Find(id)) Add({std::move(inode), true, false, 0, 0});
  }
  for (const InodeId id : open) {
    InodePtr inode = inodes_.Find(id);
    if (inode == nullptr) continue;
    inode->Distrust();
    Add({std::move(inode), false, false, 0, 0});
  }
}

void LeaseKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    added_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    if (!task.flush) forgets_.erase(task.inode->id());
    lock.unlock();
    // First, as the kernel may have more to write.
    hooks_.forget_pages(task.inode->id());
    if (task.flush) GiveBack(task);
    lock.lock();
  }
}

void LeaseKeeper::GiveBack(const Task& task) {
  leases_.WhenQuiet(task.inode->id(), [this, task] {
    hooks_.flush(task.inode, [this, task] {
      if (!task.yields) return;
      const InodeId id = task.inode->id();
      hooks_.yield(task.epoch, task.seq, {id}, [this, id] {
        const std::lock_guard lock(mutex_);
        giving_back_.erase(id);
      });
    });
  });
}

}  // namespace weir::client
