#include "mds/service/fair_queue.h"

#include <algorithm>

namespace weir::mds {

FairQueue::Turn FairQueue::NewTurn() {
  return {static_cast<void*>(this), [this](void*) { GiveBack(); }};
}

void FairQueue::Submit(ClassId class_id, double weight, Work work) {
  {
    std::unique_lock lock(mutex_);
    if (stopped_) return;
    Class& mine = classes_[class_id];
    const double start = std::max(now_, mine.finish);
    mine.finish = start + 1 / weight;
    ++mine.operations;
    if (begun_ >= depth_ || !heads_.empty()) {
      ++mine.delayed;
      if (mine.queue.empty()) heads_.emplace(start, class_id);
      mine.queue.push_back({start, std::move(work)});
      Drain(&lock);
      return;
    }
    ++begun_;
    now_ = start;
  }
  work(NewTurn());
}

void FairQueue::GiveBack() {
  std::unique_lock lock(mutex_);
  --begun_;
  Drain(&lock);
}

// By one thread at a time and never from within itself: work that ends at once gives its turn back
// right here.
void FairQueue::Drain(std::unique_lock<std::mutex>* lock) {
  if (draining_) return;
  draining_ = true;
  size_t ran = 0;
  while (begun_ < depth_ && !heads_.empty()) {
    if (hand_over_ && ++ran > kRunsForOthers) break;
    const auto [start, class_id] = *heads_.begin();
    heads_.erase(heads_.begin());
    Class& next = classes_.at(class_id);
    Work work = std::move(next.queue.front().work);
    next.queue.pop_front();
    if (!next.queue.empty()) heads_.emplace(next.queue.front().start, class_id);
    now_ = std::max(now_, start);
    ++begun_;
    lock->unlock();
    work(NewTurn());
    work = nullptr;  // may hold the turn
    lock->lock();
  }
  draining_ = false;
  if (handed_over_ || stopped_ || begun_ >= depth_ || heads_.empty()) return;
  handed_over_ = true;
  lock->unlock();
  hand_over_([this] {
    std::unique_lock again(mutex_);
    handed_over_ = false;
    Drain(&again);
  });
  lock->lock();
}

void FairQueue::Stop() {
  std::map<ClassId, Class> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  heads_.clear();
  dropped.swap(classes_);
}

std::vector<FairQueue::Load> FairQueue::Loads() const {
  std::vector<Load> loads;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, one] : classes_) {
    loads.push_back({id, one.operations, one.queue.size(), one.delayed});
  }
  return loads;
}

}  // namespace weir::mds
