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
  if (late) WaitedInVainLocked(now);
  // Whoever is gone by EndGone is seen there or here.
  if (stopped_ || ask_ == nullptr || wait->last || late || IsGone(*wait)) return false;
  TimePoint due = now;
  if (!first) {
    due += wait->pause;
    wait->pause = std::min(2 * wait->pause, kLongestPause);
  }
  waiters_.push_back({wait, std::move(*then), due});
  return true;
}

// Where nothing was pending, as far as is known, what comes to be is something else.
void RoomWaits::WaitedInVainLocked(TimePoint now) {
  if (pending_ == 0) return;
  in_vain_ = pending_;
  in_vain_since_ = now;
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
    const bool lapsed = clock_.Now() - in_vain_since_ >= kLongest;
    if (!pending.ok() || lapsed || in_vain_ != pending_) in_vain_.reset();
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

void RoomWaits::EndGone() {
  End([](const Wait& wait) { return IsGone(wait); }, false);
}

void RoomWaits::Tick() {
  End([now = clock_.Now()](const Wait& wait) { return now >= wait.until; }, true);
  AskIfDue();
}

template <typename Ends>
void RoomWaits::End(Ends ends, bool in_vain) {
  std::vector<Waiter> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto first = std::partition(waiters_.begin(), waiters_.end(),
                                      [&](const Waiter& one) { return !ends(*one.wait); });
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(waiters_.end()));
    waiters_.erase(first, waiters_.end());
    if (in_vain && !ended.empty()) WaitedInVainLocked(clock_.Now());
  }
  for (const Waiter& one : ended) one.then(false);
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
