// Reactor: a loop that owns one thread, its descriptors, its disk requests, its timers and a
// mailbox. A turn takes what has come (completions, readiness, posted tasks, timers that are due),
// runs it, runs the tasks of the turn's end and submits what all of these have asked for; with
// nothing left to do it waits, in the one system call that submits.
//
// Backends: io_uring (Linux 5.19 and newer), or epoll and Linux AIO where io_uring is refused, as
//           containers' seccomp filters do. The environment variable WEIR_REACTOR, `uring` or
//           `epoll`, decides for a whole process.
// Threads:  Post, Start and Stop from any other thread; Watch, Unwatch, Submit and the timers
//           from the reactor's own, or before Start.
// Errors:   Create: kIo says which resource is missing. A disk request ends with -errno.
// Source:   one loop per core instead of hops between threads: README.md has the measurements.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/adaptive_poll.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/reactor/loop.h"
#include "common/reactor/timer_queue.h"

struct io_uring;

namespace weir {

// Hears of a descriptor's readiness.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // Edge triggered: there may be something to read, or the peer has gone; the watcher reads until
  // EAGAIN, or calls Reactor::Continue to go on after what else has come.
  virtual void OnReadable() = 0;
  // Once for each Reactor::WaitWritable.
  virtual void OnWritable() {}
  // Once for each Reactor::Continue.
  virtual void OnContinue() { OnReadable(); }
};

// One request to a disk, kept by its owner until Done.
class DiskRequest {
 public:
  enum class Kind : uint8_t { kRead, kWrite, kSync };

  virtual ~DiskRequest() = default;
  // On the reactor's thread, never within Submit: the bytes moved, or -errno.
  virtual void Done(int64_t result) = 0;

  Kind kind = Kind::kRead;
  int fd = -1;
  uint64_t offset = 0;  // bytes
  uint8_t* data = nullptr;
  uint32_t length = 0;  // bytes
};

// The end of any other request of an io_uring, as its submitter put it there by Reactor::ring.
class RingCompletion {
 public:
  virtual ~RingCompletion() = default;
  virtual void Complete(int32_t result, uint32_t flags) = 0;
};

class Poller;

class Reactor final : public Loop {
 public:
  enum class Backend : uint8_t { kUring, kEpoll };
  struct Options {
    std::string name = "reactor";      // of its thread, 15 characters
    std::optional<Backend> backend{};  // none: as the environment says, else io_uring if it may be
    bool large_entries = false;        // submission entries of 128 bytes, for FUSE over io_uring
  };

  static Result<std::unique_ptr<Reactor>> Create(const Options& options);
  ~Reactor() override;  // stops
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // Starts the thread.
  void Start();
  // Ends the thread after the running task; tasks and timers that are left are dropped. Idempotent.
  // Requires: no disk request is under way.
  void Stop();

  [[nodiscard]] bool InLoop() const override;
  void Post(Task task) override;
  void AtTurnEnd(Task task) override;
  LoopTimer RunAt(TimePoint when, Task task) override;
  void CancelTimer(LoopTimer timer) override;
  // `watcher` hears of `fd` until Unwatch, which comes before the descriptor is closed.
  void Watch(int fd, Watcher* watcher);
  // The same for a descriptor that several reactors watch so: what comes wakes one of those that
  // sleep. Level triggered: OnReadable each turn as long as there is something to read. Who leaves
  // it to the others unwatches in OnReadable, having found nothing more: at any other time he may
  // take a wake with him that was theirs.
  void WatchShared(int fd, Watcher* watcher);
  void Unwatch(Watcher* watcher);
  // OnWritable once there is room in the socket's buffer.
  void WaitWritable(Watcher* watcher);
  // OnContinue once what else has come had its turn: for a bounded piece of what takes long.
  void Continue(Watcher* watcher);
  // Not after all: for a watcher without a descriptor, before it is gone.
  void DoNotContinue(Watcher* watcher);

  // Goes to the disk at once, so that it works while the turn goes on.
  void Submit(DiskRequest* request);

  [[nodiscard]] Backend backend() const { return backend_; }
  // For requests that this class does not know: a RingCompletion as the entry's user data, through
  // TagOf. Null under epoll.
  [[nodiscard]] io_uring* ring() const;
  static uint64_t TagOf(RingCompletion* completion);

  // Turns that ended in a wait, since Start.
  [[nodiscard]] uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  // How long it has waited, since Start. On the reactor's thread.
  [[nodiscard]] Duration waited() const { return waited_; }
  // How much of that it has looked for something to do before it slept (AdaptivePoll).
  [[nodiscard]] Duration looked() const { return looked_; }

 private:
  Reactor(std::unique_ptr<Poller> poller, Backend backend, std::string name);
  void Run();
  void RunPosted();
  void RunContinued();
  void RunTurnEnds();
  [[nodiscard]] bool MustNotSleep();
  void Wait();
  bool Look(TimePoint until);
  void Wake();

  const std::unique_ptr<Poller> poller_;
  const Backend backend_;
  const std::string name_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> waits_{0};

  // Of the reactor's thread.
  Duration waited_{0}, looked_{0};
  AdaptivePoll looking_;
  TimerQueue timers_;
  std::vector<Task> turn_ends_;
  std::vector<Task> ending_, running_;  // kept for their capacity
  std::deque<Watcher*> continued_;

  std::mutex mutex_;
  std::vector<Task> posted_;           // guarded by mutex_
  std::atomic<bool> sleeping_{false};  // the thread waits, or is about to, and nobody has woken it
};

}  // namespace weir
