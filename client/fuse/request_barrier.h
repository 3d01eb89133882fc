// RequestBarrier: says when every request that the kernel had queued before has reached its
// handler.
//
// When close(2) has returned, the kernel has queued the RELEASE of the file, and waits for nothing.
// Whoever wants to know whether a file is still open has to look behind what is queued. So the
// kernel is asked for a mark (NOTIFY_RETRIEVE of no bytes of the root), which it puts at the end of
// the queue: when that has been taken off, all before it have been; and when each reactor has
// handled what it had taken by then, these have been through their handlers.
//
// Threads: any; `then` runs on the first reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "client/fuse/kernel_reactors.h"

namespace weir::client {

class RequestBarrier {
 public:
  RequestBarrier() = default;
  ~RequestBarrier() { Stop(); }
  RequestBarrier(const RequestBarrier&) = delete;
  RequestBarrier& operator=(const RequestBarrier&) = delete;

  void Start(KernelReactors& reactors);
  // What waits is run, and from now on nobody waits. The reactors still run.
  void Stop();
  void After(std::function<void()> then);
  // By its handler: the mark has come.
  void Marked(uint64_t mark);

 private:
  void Ask();                  // on the first reactor
  void Await(uint64_t round);  // with the lock
  bool Pass(uint64_t round);   // on the first reactor

  std::mutex mutex_;
  KernelReactors* reactors_ = nullptr;          // null: before Start and after Stop
  std::vector<std::function<void()>> waiting_;  // for the next round
  std::vector<std::function<void()>> passing_;  // behind the mark that is on its way
  uint64_t round_ = 0;                          // ends with Pass
  size_t marks_ = 0;                            // that have not come
  LoopTimer patience_ = 0;                      // of the first reactor
  bool under_way_ = false;
};

}  // namespace weir::client
