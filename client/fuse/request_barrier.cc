#include "client/fuse/request_barrier.h"

#include <chrono>
#include <utility>

namespace weir::client {
namespace {

// A kernel that gives no mark, or a handler that hangs, keeps nobody longer.
constexpr auto kPatience = std::chrono::seconds(1);
// Even, and above all that the kernel counts by itself: the number of a mark is that of no request.
constexpr uint64_t kMarks = uint64_t{1} << 62;

uint64_t MarkOf(uint64_t round) {
  return kMarks + 2 * round;
}

}  // namespace

void RequestBarrier::Start(KernelReactors& reactors) {
  const std::lock_guard lock(mutex_);
  reactors_ = &reactors;
}

void RequestBarrier::Stop() {
  std::vector<std::function<void()>> passing, waiting;
  {
    const std::lock_guard lock(mutex_);
    reactors_ = nullptr;
    passing.swap(passing_);
    waiting.swap(waiting_);
  }
  for (const auto& then : passing) then();
  for (const auto& then : waiting) then();
}

void RequestBarrier::After(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (reactors_ != nullptr) {
      waiting_.push_back(std::move(then));
      if (!std::exchange(under_way_, true)) reactors_->first().Post([this] { Ask(); });
      return;
    }
  }
  then();
}

void RequestBarrier::Ask() {
  KernelReactors* reactors = nullptr;
  uint64_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    if (reactors_ == nullptr) return;
    reactors = reactors_;
    passing_.swap(waiting_);
    round = ++round_;
    const uint64_t mark = MarkOf(round);
    marks_ = reactors_->Mark(mark, [this, mark] { Marked(mark); });
    if (marks_ == 0) Await(round);
  }
  patience_ =
      reactors->first().RunAt(SystemClock::Get().Now() + kPatience, [this, round] { Pass(round); });
}

void RequestBarrier::Marked(uint64_t mark) {
  const std::lock_guard lock(mutex_);
  if (reactors_ != nullptr && mark == MarkOf(round_) && --marks_ == 0) Await(round_);
}

void RequestBarrier::Await(uint64_t round) {
  reactors_->WhenHandled([this, first = &reactors_->first(), round] {
    first->Post([this, first, round] {
      if (Pass(round)) first->CancelTimer(patience_);
    });
  });
}

bool RequestBarrier::Pass(uint64_t round) {
  std::vector<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex_);
    if (round != round_ || !under_way_) return false;  // that one has passed
    now.swap(passing_);
    under_way_ = !waiting_.empty() && reactors_ != nullptr;
    if (under_way_) reactors_->first().Post([this] { Ask(); });
    ++round_;
  }
  for (const auto& then : now) then();
  return true;
}

}  // namespace weir::client
