#include "mds/service/replays.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::mds {

void Replays::Await(const std::vector<uint64_t>& sessions, const std::vector<uint64_t>& given_up) {
  const std::lock_guard lock(mutex_);
  awaited_.insert(sessions.begin(), sessions.end());
  for (const uint64_t session : sessions) lost_[session] = false;
  for (const uint64_t session : given_up) lost_[session] = true;
  any_ = !awaited_.empty();
  until_ = clock_.Now() + patience_;
}

bool Replays::Awaits(uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return awaited_.contains(session);
}

bool Replays::Park(uint64_t session, Work* work) {
  const std::lock_guard lock(mutex_);
  if (awaited_.empty() && !draining_) return false;
  parked_.push_back({session, std::move(*work), HasLost(session)});
  return true;
}

void Replays::Done(uint64_t session) {
  std::unique_lock lock(mutex_);
  awaited_.erase(session);
  if (const auto known = lost_.find(session); known != lost_.end()) known->second = false;
  RunIfNone(std::move(lock));
}

void Replays::GiveUp(uint64_t session) {
  std::unique_lock lock(mutex_);
  GiveUpLocked(session);
  RunIfNone(std::move(lock));
}

void Replays::GiveUpLocked(uint64_t session) {
  if (awaited_.erase(session) == 0) return;
  record_(session);
  lost_.at(session) = true;
  for (Parked& parked : parked_) parked.given_up = parked.given_up || parked.session == session;
}

bool Replays::HasLost(uint64_t session) const {
  const auto known = lost_.find(session);
  return known != lost_.end() && known->second;
}

void Replays::Drop(uint64_t session) {
  std::vector<Parked> dropped;  // not under the lock
  {
    const std::lock_guard lock(mutex_);
    const auto its = std::stable_partition(parked_.begin(), parked_.end(), [&](const auto& parked) {
      return parked.session != session;
    });
    std::move(its, parked_.end(), std::back_inserter(dropped));
    parked_.erase(its, parked_.end());
  }
  Done(session);
}

std::vector<uint64_t> Replays::TakeOverdue(const std::function<Duration(uint64_t)>& silent) {
  std::unique_lock lock(mutex_);
  if (awaited_.empty() || clock_.Now() < until_) return {};
  std::vector<uint64_t> overdue;
  for (const uint64_t session : awaited_) {
    if (silent(session) > patience_) overdue.push_back(session);
  }
  for (const uint64_t session : overdue) GiveUpLocked(session);
  if (!overdue.empty()) RunIfNone(std::move(lock));
  return overdue;
}

// In the order in which they came; what comes meanwhile goes behind them.
void Replays::RunIfNone(std::unique_lock<std::mutex> lock) {
  if (!awaited_.empty() || draining_) return;
  draining_ = true;
  while (!parked_.empty()) {
    const std::vector<Parked> parked = std::exchange(parked_, {});
    lock.unlock();
    for (const Parked& one : parked) one.work(one.given_up);
    lock.lock();
  }
  draining_ = false;
  any_ = false;
}

}  // namespace weir::mds
