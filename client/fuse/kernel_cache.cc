#include "client/fuse/kernel_cache.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace weir::client {
namespace {
constexpr uint64_t kPage = 4096;
constexpr int32_t kIncEpoch = 8;  // by number, as the kernel's header may be older than the kernel
}  // namespace

void KernelCache::Start(fuse_session* session, Reactor& follower) {
  session_ = session;
  follower_ = &follower;
  const std::lock_guard lock(mutex_);
  started_ = true;
  NeedTellerLocked();
}

void KernelCache::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (!teller_.joinable()) return;
  teller_.join();
  RunInLoopAndWait(*follower_, [] {});  // behind what was posted
}

void KernelCache::Give(Order order) {
  {
    std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    NeedTellerLocked();
  }
  changed_.notify_one();
}

void KernelCache::NeedTellerLocked() {
  if (!started_ || stopping_ || orders_.empty() || teller_.joinable()) return;
  teller_ = std::thread([this] { Tell(); });
}

void KernelCache::Drop(fuse_ino_t number, std::function<void()> then) {
  Give({number, std::move(then), {}});
}

void KernelCache::DropEnds(fuse_ino_t number, uint64_t size, std::function<void()> then) {
  Give({number, std::move(then), {}, std::max<uint64_t>(size, 1)});
}

void KernelCache::AskAgainSoon(fuse_ino_t directory, const std::string& name) {
  Give({directory, nullptr, {name}});
}

void KernelCache::AskAttributesAgain(fuse_ino_t number) {
  Give({.number = number, .then = nullptr, .names = {}, .attributes = true});
}

void KernelCache::WhenTold(std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    if (!orders_.empty() || telling_) {
      orders_.push_back({.number = 0, .then = std::move(then), .names = {}, .attributes = true});
      return;  // it is awake
    }
  }
  then();
}

void KernelCache::ForgetPlaceSoon(fuse_ino_t directory, const std::string& name) {
  Give({.number = directory, .then = nullptr, .names = {name}, .forgets = true});
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

// An error means that the kernel knows nothing of the file, or is gone.
void KernelCache::Obey(const Order& order) {
  if (order.forgets) {
    const std::string& name = order.names.front();
    fuse_lowlevel_notify_inval_entry(session_, order.number, name.c_str(), name.size());
    return;
  }
  if (!order.names.empty()) return AskAgain(order.number, order.names);
  if (order.attributes) {
    if (order.number != 0) fuse_lowlevel_notify_inval_inode(session_, order.number, -1, 0);
    return;
  }
  if (order.ends_of == 0) {
    fuse_lowlevel_notify_inval_inode(session_, order.number, 0, 0);
    return;
  }
  fuse_lowlevel_notify_inval_inode(session_, order.number, 0, kPage);
  const auto last = static_cast<off_t>((order.ends_of - 1) / kPage * kPage);
  if (last > 0) fuse_lowlevel_notify_inval_inode(session_, order.number, last, kPage);
}

void KernelCache::Tell() {
  pthread_setname_np(pthread_self(), "kernel_cache");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !orders_.empty(); });
    if (orders_.empty()) return;
    Order order = std::move(orders_.front());
    orders_.pop_front();
    telling_ = true;
    lock.unlock();
    Obey(order);
    lock.lock();
    telling_ = false;
    if (order.then) follower_->Post(std::move(order.then));
  }
}

}  // namespace weir::client
