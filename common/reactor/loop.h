// Loop: runs tasks and timers, one at a time, in the order of their arrival and of their times. A
// Reactor is one with a thread, descriptors and disks; a simulation has one that runs in virtual
// time.
//
// Threads: Post from any thread; everything else on the loop's own. What belongs to a loop is
//          touched by its tasks only, and needs no lock.
// Errors:  none. Tasks must not throw and must not block.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/time.h"

namespace weir {

using LoopTimer = uint64_t;  // 0: none

class Loop {
 public:
  using Task = std::function<void()>;

  virtual ~Loop() = default;
  // Whether the calling thread is the loop's own.
  [[nodiscard]] virtual bool InLoop() const = 0;
  // Runs `task` soon. Tasks of one thread run in the order of their posting.
  virtual void Post(Task task) = 0;
  // Runs `task` in this turn, after everything that the turn has found to do: for what several
  // tasks of a turn share, as the sending of what they have written.
  virtual void AtTurnEnd(Task task) = 0;
  // Runs `task` once `when` has come. Timers of one time run in the order of their making.
  virtual LoopTimer RunAt(TimePoint when, Task task) = 0;
  // The task does not run any more; nothing happens for one that has run, and for 0.
  virtual void CancelTimer(LoopTimer timer) = 0;
};

// Runs `task` now on the loop's own thread, else posts it.
void RunInLoop(Loop& loop, Loop::Task task);
// Runs `task` in the loop and waits for its end. Requires: the loop runs, and goes on until then.
void RunInLoopAndWait(Loop& loop, const Loop::Task& task);

}  // namespace weir
