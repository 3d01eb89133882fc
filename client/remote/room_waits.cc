#include "client/remote/room_waits.h"

#include <algorithm>
#include <utility>

namespace weir::client {

void RoomWaits::Await(Wait* wait, Then then) {
  if (!Enter(wait, &then)) return then(false);
}

// False: it is not to wait.
bool RoomWaits::Enter(Wait* wait, Then* then) {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    const bool first = wait->until == TimePoint{};
    if (first) wait->until = now + kLongest;
    const bool late = now >= wait->until;
    if (late) in_vain_ = pending_;
    if (stopped_ || ask_ == nullptr || wait->last || late) return false;
    waiters_.push_back({wait, std::move(*then), ++last_number_});
    // Who comes again knows that he is to wait, and Tick asks for him.
    if (!first || asking_) return true;
    asking_ = true;
  }
  AskNow();
  return true;
}

void RoomWaits::AskNow() {
  uint64_t up_to = 0;
  {
    const std::lock_guard lock(mutex_);
    up_to = last_number_;
  }
  ask_([this, up_to](const Result<uint64_t>& pending) { Answered(up_to, pending); });
}

void RoomWaits::Answered(uint64_t up_to, const Result<uint64_t>& pending) {
  std::vector<Waiter> heard;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    asking_ = false;
    if (pending.ok()) pending_ = *pending;
    if (!pending.ok() || in_vain_ != pending_) in_vain_.reset();
    again = pending.ok() && !in_vain_.has_value();
    const auto later = std::partition(waiters_.begin(), waiters_.end(),
                                      [up_to](const Waiter& one) { return one.number > up_to; });
    heard.assign(std::make_move_iterator(later), std::make_move_iterator(waiters_.end()));
    waiters_.erase(later, waiters_.end());
    for (const Waiter& one : heard) one.wait->last = pending_ == 0;
    ask_at_ = clock_.Now() + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  for (const Waiter& one : heard) one.then(again);
}

void RoomWaits::Tick() {
  std::vector<Waiter> late;
  bool ask = false;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    const auto ends = std::partition(waiters_.begin(), waiters_.end(),
                                     [now](const Waiter& one) { return now < one.wait->until; });
    late.assign(std::make_move_iterator(ends), std::make_move_iterator(waiters_.end()));
    waiters_.erase(ends, waiters_.end());
    if (!late.empty()) in_vain_ = pending_;
    if (now >= ask_at_ && !asking_) {
      ask = !waiters_.empty();
      asking_ = ask;
      if (!ask) pause_ = kFirstPause;
    }
  }
  for (const Waiter& one : late) one.then(false);
  if (ask) AskNow();
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
