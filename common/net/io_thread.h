// IoThread: one thread with a task queue and one timer, for each end of inproc.
//
// One task or timer runs at a time, wherever it runs: RunOrPost lends the caller's thread while the
// own one has nothing to do, which saves the two context switches of a hop.
//
// Threads: Post, RunOrPost and RunAfter from any thread. Stop not from a task.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/inheriting_mutex.h"
#include "common/base/time.h"

namespace weir::net {

class IoThread {
 public:
  using Task = std::function<void()>;

  IoThread();
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void Start();
  // Runs the tasks posted so far no more, waits for the running one. Later posts are dropped.
  void Stop();

  // In order. A burst costs one wake-up.
  void Post(Task task);
  // The same order as Post. Runs the task now, on the calling thread, when nothing else runs or
  // waits; posts it otherwise. From inside such a task, so that nothing nests, it is posted or,
  // with an `owner` that keeps this alive, left to the caller's RunLater if there is one. The
  // caller holds no lock that a task may want.
  void RunOrPost(Task task, std::shared_ptr<void> owner = nullptr);
  void RunAfter(Duration delay, Task task);
  [[nodiscard]] bool InThread() const;

 private:
  void Run();
  bool RunTasks();
  bool RunTimer();
  bool LendTo(Task& task);
  void Wait();
  void WakeLocked();

  int wake_fd_;
  std::thread thread_;

  // Held by whoever runs tasks or the timer. Taken before mutex_.
  InheritingMutex running_mutex_;

  InheritingMutex mutex_;
  std::vector<Task> tasks_;
  bool lent_ = false;  // somebody else's thread runs tasks and looks for more when it is done
  bool started_ = false;
  bool waiting_ = false;  // the thread sleeps, or is about to, and nobody has woken it yet
  bool stopping_ = false;
  TimePoint timer_at_ = TimePoint::Max();
  Task timer_;
  std::vector<Task> running_;  // the thread's own; kept for its capacity
};

}  // namespace weir::net
