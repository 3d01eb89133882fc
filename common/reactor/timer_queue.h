// TimerQueue: tasks by the time at which they are due. Pure: the caller brings the time.
//
// Threads: one.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/base/time.h"
#include "common/reactor/loop.h"

namespace weir {

class TimerQueue {
 public:
  LoopTimer Add(TimePoint when, Loop::Task task);
  void Cancel(LoopTimer timer);
  // Max: there is none.
  [[nodiscard]] TimePoint Next() const;
  // Runs those that are due and were made before the call. Returns whether there were any.
  bool Run(TimePoint now);

 private:
  using Key = std::pair<TimePoint, LoopTimer>;  // ties in the order of their making
  std::map<Key, Loop::Task> tasks_;
  std::unordered_map<LoopTimer, TimePoint> times_;
  LoopTimer last_ = 0;
};

}  // namespace weir
