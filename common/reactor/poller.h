// Poller: what a Reactor asks of the kernel; one for io_uring, one for epoll and AIO. Private to
// this folder.
//
// Threads: Wake from any; the rest from the reactor's thread, or before it runs.
#pragma once

#include <memory>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/reactor/reactor.h"

namespace weir {

class Poller {
 public:
  virtual ~Poller() = default;
  // First call on the thread that makes all others.
  virtual void Enter() = 0;
  virtual void Watch(int fd, Watcher* watcher) = 0;
  virtual void WatchShared(int fd, Watcher* watcher) = 0;
  virtual void Unwatch(Watcher* watcher) = 0;
  virtual void WaitWritable(Watcher* watcher) = 0;
  virtual void Submit(DiskRequest* request) = 0;
  // Submits, and waits until something has ended or is ready, or a Wake, or `until`; a time in the
  // past: does not wait.
  virtual void Wait(TimePoint until) = 0;
  // Whether there is something for Run.
  [[nodiscard]] virtual bool Found() = 0;
  // Runs what has ended or is ready.
  virtual void Run() = 0;
  virtual void Wake() = 0;
  [[nodiscard]] virtual io_uring* ring() { return nullptr; }
};

// kNotSupported: the kernel, or a filter, does not let this process have one.
Result<std::unique_ptr<Poller>> MakeUringPoller(bool large_entries);
Result<std::unique_ptr<Poller>> MakeEpollPoller();

}  // namespace weir
