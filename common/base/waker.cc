#include "common/base/waker.h"

#include <algorithm>

namespace weir {

Waker::Waker(Clock& clock, Poll poll) : clock_(clock), poll_(std::move(poll)) {}

Waker::~Waker() {
  Stop();
}

void Waker::Start() {
  const std::lock_guard lock(mutex_);
  armed_ns_ = TimePoint::Max().ns;
}

void Waker::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    armed_ns_ = INT64_MIN;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Waker::WakeBy(TimePoint when) {
  if (when.ns >= armed_ns_.load()) return;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || when.ns >= armed_ns_.load()) return;
    armed_ns_ = when.ns;
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.notify_one();
}

void Waker::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const int64_t now = clock_.Now().ns;
    const int64_t armed = armed_ns_;
    if (armed > now) {
      // The cap keeps now + wait within what the condition variable can express.
      const int64_t longest = int64_t{3600} * 1'000'000'000;
      changed_.wait_for(lock, Duration(std::min(armed - now, longest)));
      continue;
    }
    // Everything asked for from here on is a new wish, even while poll runs.
    armed_ns_ = TimePoint::Max().ns;
    lock.unlock();
    const TimePoint next = poll_();
    lock.lock();
    if (stopping_) return;
    armed_ns_ = std::min(armed_ns_.load(), next.ns);
  }
}

}  // namespace weir
