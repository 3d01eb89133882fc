#include "client/remote/room_waits.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::client {

void RoomWaits::Await(Wait* wait, Then then) {
  if (!Enter(wait, &then)) return then(false);
  AskIfDue();
}

// False: it is not to wait.
bool RoomWaits::Enter(Wait* wait, Then* then) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  const bool first = wait->until == TimePoint{};
  if (first) wait->until = now + kLongest;
  const bool late = now >= wait->until;
  if (late) in_vain_ = pending_;
  if (stopped_ || ask_ == nullptr || wait->last || late) return false;
  TimePoint due = now;
  if (!first) {
    due += wait->pause;
    wait->pause = std::min(2 * wait->pause, kLongestPause);
  }
  waiters_.push_back({wait, std::move(*then), due});
  return true;
}

void RoomWaits::AskIfDue() {
  TimePoint now;
  {
    const std::lock_guard lock(mutex_);
    now = clock_.Now();
    const bool due = std::any_of(waiters_.begin(), waiters_.end(),
                                 [now](const Waiter& one) { return one.due <= now; });
    if (stopped_ || asking_ || !due) return;
    asking_ = true;
  }
  ask_([this, now](const Result<uint64_t>& pending) { Answered(now, pending); });
}

void RoomWaits::Answered(TimePoint asked, const Result<uint64_t>& pending) {
  std::vector<Waiter> heard;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    asking_ = false;
    if (pending.ok()) pending_ = *pending;
    if (!pending.ok() || in_vain_ != pending_) in_vain_.reset();
    again = pending.ok() && !in_vain_.has_value();
    const auto told = std::partition(waiters_.begin(), waiters_.end(),
                                     [asked](const Waiter& one) { return one.due > asked; });
    heard.assign(std::make_move_iterator(told), std::make_move_iterator(waiters_.end()));
    waiters_.erase(told, waiters_.end());
    for (const Waiter& one : heard) one.wait->last = pending_ == 0;
  }
  for (const Waiter& one : heard) one.then(again);
  AskIfDue();  // for who has come meanwhile
}

void RoomWaits::Tick() {
  std::vector<Waiter> late;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    const auto ends = std::partition(waiters_.begin(), waiters_.end(),
                                     [now](const Waiter& one) { return now < one.wait->until; });
    late.assign(std::make_move_iterator(ends), std::make_move_iterator(waiters_.end()));
    waiters_.erase(ends, waiters_.end());
    if (!late.empty()) in_vain_ = pending_;
  }
  for (const Waiter& one : late) one.then(false);
  AskIfDue();
}

void RoomWaits::Stop() {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiters.swap(waiters_);
  }
  for (const Waiter& one : waiters) one.then(false);
}

}  // namespace weir::client
