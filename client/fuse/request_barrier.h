// RequestBarrier: says when every request that the kernel had queued before has reached its
// handler.
//
// When close(2) has returned, the kernel has queued the RELEASE of the file, and waits for nothing.
// Whoever wants to know whether a file is still open has to look behind what is queued. So the
// kernel is asked for a mark (NOTIFY_RETRIEVE of no bytes of the root), which it puts at the end of
// the queue: when a thread has taken that off, all before it have been taken off; and when each
// thread has come for another request since, or sleeps in the kernel to get one, these have been
// through their handlers, or are in those that wait for nobody.
//
// Threads: any; `then` runs on the thread of this object. Stop before the session ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "client/fuse/fuse_api.h"

namespace weir::client {

class ReceiveLoop;

class RequestBarrier {
 public:
  RequestBarrier() = default;
  ~RequestBarrier() { Stop(); }
  RequestBarrier(const RequestBarrier&) = delete;
  RequestBarrier& operator=(const RequestBarrier&) = delete;

  void Start(fuse_session* session, const ReceiveLoop& loop);
  void Stop();  // what waits is run
  void After(std::function<void()> then);
  // By its handler: the mark has come.
  void Marked(uint64_t mark);

 private:
  void Run();
  void AwaitMark(std::unique_lock<std::mutex>* lock);

  fuse_session* session_ = nullptr;
  const ReceiveLoop* loop_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> waiting_;
  uint64_t asked_ = 0;
  uint64_t marked_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::client
