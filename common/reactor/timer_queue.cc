#include "common/reactor/timer_queue.h"

namespace weir {

LoopTimer TimerQueue::Add(TimePoint when, Loop::Task task) {
  const LoopTimer timer = ++last_;
  tasks_.emplace(Key(when, timer), std::move(task));
  times_.emplace(timer, when);
  return timer;
}

void TimerQueue::Cancel(LoopTimer timer) {
  const auto it = times_.find(timer);
  if (it == times_.end()) return;
  tasks_.erase(Key(it->second, timer));
  times_.erase(it);
}

TimePoint TimerQueue::Next() const {
  return tasks_.empty() ? TimePoint::Max() : tasks_.begin()->first.first;
}

bool TimerQueue::Run(TimePoint now) {
  const LoopTimer newest = last_;
  bool ran = false;
  for (auto it = tasks_.begin(); it != tasks_.end() && it->first.first <= now;) {
    if (it->first.second > newest) {
      ++it;
      continue;
    }
    times_.erase(it->first.second);
    auto node = tasks_.extract(it);
    node.mapped()();  // may add and cancel
    ran = true;
    it = tasks_.begin();
  }
  return ran;
}

}  // namespace weir
