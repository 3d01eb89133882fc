// ManualLoop: a Loop without a thread, on a clock that the test moves. Posted tasks and turn ends
// run in Run, timers that are due in RunDue, whose next call a simulation is asked for by `wake`.
// The test's thread is the loop's.
// Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "common/base/time.h"
#include "common/reactor/loop.h"
#include "common/reactor/timer_queue.h"

namespace weir::testing {

class ManualLoop final : public Loop {
 public:
  using Wake = std::function<void(TimePoint)>;
  explicit ManualLoop(Clock& clock, Wake wake = nullptr) : clock_(clock), wake_(std::move(wake)) {}

  [[nodiscard]] bool InLoop() const override { return true; }
  void Post(Task task) override {
    tasks_.push_back(std::move(task));
    if (wake_) wake_(clock_.Now());
  }
  void AtTurnEnd(Task task) override { Post(std::move(task)); }
  LoopTimer RunAt(TimePoint when, Task task) override {
    if (wake_) wake_(when);
    return timers_.Add(when, std::move(task));
  }
  void CancelTimer(LoopTimer timer) override { timers_.Cancel(timer); }

  // Until no task is left.
  void Run() {
    while (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void RunDue() {
    timers_.Run(clock_.Now());
    Run();
  }
  [[nodiscard]] size_t tasks() const { return tasks_.size(); }
  [[nodiscard]] TimePoint NextTimer() const { return timers_.Next(); }

 private:
  Clock& clock_;
  const Wake wake_;
  std::deque<Task> tasks_;
  TimerQueue timers_;
};

}  // namespace weir::testing
