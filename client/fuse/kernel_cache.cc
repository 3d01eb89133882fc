#include "client/fuse/kernel_cache.h"

#include <utility>

namespace weir::client {

void KernelCache::Start(fuse_session* session) {
  session_ = session;
  thread_ = std::thread([this] { Loop(); });
}

void KernelCache::Stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void KernelCache::Drop(fuse_ino_t number, std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    orders_.push_back({number, std::move(then)});
  }
  changed_.notify_one();
}

void KernelCache::Loop() {
  for (;;) {
    Order order;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !orders_.empty(); });
      if (orders_.empty()) return;
      order = std::move(orders_.front());
      orders_.pop_front();
    }
    // An error means that the kernel knows nothing of the file, or is gone.
    fuse_lowlevel_notify_inval_inode(session_, order.number, 0, 0);
    order.then();
  }
}

}  // namespace weir::client
