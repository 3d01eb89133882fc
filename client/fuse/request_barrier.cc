#include "client/fuse/request_barrier.h"

#include <chrono>
#include <utility>

#include "client/fuse/receive_loop.h"

namespace weir::client {
namespace {

// A kernel that gives no mark, or a handler that hangs, keeps nobody longer.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kLookAgain = std::chrono::microseconds(50);

}  // namespace

void RequestBarrier::Start(fuse_session* session, const ReceiveLoop& loop) {
  session_ = session;
  loop_ = &loop;
  thread_ = std::thread([this] { Run(); });
}

void RequestBarrier::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RequestBarrier::After(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(then));
  }
  changed_.notify_all();
}

void RequestBarrier::Marked(uint64_t mark) {
  {
    const std::lock_guard lock(mutex_);
    marked_ = mark;
  }
  changed_.notify_all();
}

void RequestBarrier::AwaitMark(std::unique_lock<std::mutex>* lock) {
  const uint64_t mark = ++asked_;
  lock->unlock();
  void* const cookie = reinterpret_cast<void*>(mark);  // NOLINT(performance-no-int-to-ptr)
  const int error = fuse_lowlevel_notify_retrieve(session_, FUSE_ROOT_ID, 0, 0, cookie);
  lock->lock();
  if (error != 0) return;
  changed_.wait_for(*lock, kPatience, [&] { return stopping_ || marked_ >= mark; });
}

void RequestBarrier::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    std::vector<std::function<void()>> now = std::exchange(waiting_, {});
    if (!stopping_) AwaitMark(&lock);
    const bool stopping = stopping_;
    lock.unlock();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    const std::vector<uint64_t> turns = loop_->Turns();
    while (!stopping && !loop_->HavePassed(turns) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kLookAgain);
    }
    for (const auto& then : now) then();
    now.clear();  // and what they hold, without the lock
    if (stopping) return;
    lock.lock();
  }
}

}  // namespace weir::client
