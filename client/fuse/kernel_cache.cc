#include "client/fuse/kernel_cache.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <utility>

namespace weir::client {
namespace {
constexpr int32_t kIncEpoch = 8;  // by number, as the kernel's header may be older than the kernel
}  // namespace

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
    orders_.push_back({number, std::move(then), {}});
  }
  changed_.notify_one();
}

void KernelCache::AskAgainSoon(fuse_ino_t directory, const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    orders_.push_back({directory, [] {}, {name}});
  }
  changed_.notify_one();
}

void KernelCache::AskAgain(fuse_ino_t directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    // An error means that the kernel does not know the name.
    fuse_lowlevel_notify_expire_entry(session_, directory, name.c_str(), name.size(),
                                      FUSE_LL_EXPIRE_ONLY);
  }
}

void KernelCache::AskAllAgain() {
  fuse_out_header order{};
  order.len = sizeof(order);
  order.error = kIncEpoch;
  // It fails only when the kernel is gone.
  (void)!write(fuse_session_fd(session_), &order, sizeof(order));
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
    if (order.names.empty()) fuse_lowlevel_notify_inval_inode(session_, order.number, 0, 0);
    AskAgain(order.number, order.names);
    order.then();
  }
}

}  // namespace weir::client
