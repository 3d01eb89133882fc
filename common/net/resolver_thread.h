// ResolverThread: looks names up, which blocks, in the order of the questions.
//
// Threads: Post from any. The destructor waits for the task that runs; those that wait are dropped.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weir::net {

class ResolverThread {
 public:
  ResolverThread();
  ~ResolverThread();
  ResolverThread(const ResolverThread&) = delete;
  ResolverThread& operator=(const ResolverThread&) = delete;

  void Post(std::function<void()> task);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;
};

}  // namespace weir::net
