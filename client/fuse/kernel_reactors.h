// KernelReactors: the threads that take the kernel's requests, run their handlers, and have the
// mount's connections (client/remote/reactor_networks.h).
//
// The kernel's queue knows no classes: whoever comes to its end waits until all before him was
// taken off; so there is more than one, and each takes small requests before it goes on with large
// ones (inbox.h).
// Threads: Start and the destructor from one; Stop from any but a reactor's; the rest from any.
// Lifetime: outlives whatever has connections on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client/fuse/device_reader.h"
#include "client/fuse/inbox.h"
#include "client/fuse/request_handler.h"
#include "client/fuse/ring_queues.h"
#include "common/base/result.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class KernelReactors {
 public:
  static constexpr uint32_t kMost = 4;
  struct Options {
    uint32_t count = 2;  // at most kMost
    // Serves as the first of them, without rings: the OSD's of this process, which then hears of a
    // request without a hop. Outlives this. Null: one of our own.
    Reactor* first = nullptr;
    bool rings = false;  // may take FUSE over io_uring
  };
  struct Serving {
    Inbox::Weight weight = Inbox::Weight::kNormal;
    Inbox::Hurried hurried;
    // Told once that the mount has ended, with the error; on a reactor. Not after Stop.
    std::function<void(int error)> on_end;
  };
  // kIo: the machine has no reactor left.
  static Result<std::unique_ptr<KernelReactors>> Create(const Options& options);
  ~KernelReactors();  // ends the threads
  KernelReactors(const KernelReactors&) = delete;
  KernelReactors& operator=(const KernelReactors&) = delete;

  // Whether all of them have an io_uring.
  [[nodiscard]] bool CanRing() const;
  // `device`: the kernel's end of the mount, from now on without blocking.
  void Prepare(int device, RequestHandler& handler, Serving serving);
  // Before Start: maps what StartRings needs. `bytes_max`: for all requests at once.
  Status PrepareRings(RingRequests& requests, uint64_t bytes_max);
  void Start();
  // FUSE_INIT was answered with kOverIoUring: requests come by io_uring from now on, unless the
  // kernel refuses it, which goes on with /dev/fuse by itself.
  void StartRings();
  // No further request is taken off once it returns; those that were have been through their
  // handlers, and may still be under way.
  void Stop();

  [[nodiscard]] Reactor& first() const { return *members_.front()->reactor; }
  [[nodiscard]] std::vector<Reactor*> all() const;
  // Has the kernel put `mark` behind everything that it has queued. How often it will come, or
  // `refused` be called, on a reactor.
  [[nodiscard]] size_t Mark(uint64_t mark, const std::function<void()>& refused) const;
  // Runs `then`, on one of the reactors, when everything that had been taken off has been through
  // its handler.
  void WhenHandled(const std::function<void()>& then);

  // Whether requests come by io_uring.
  [[nodiscard]] bool ringing() const { return ringing_; }
  [[nodiscard]] RingQueues::Counters ring_counters() const;

 private:
  struct Member {
    std::unique_ptr<Reactor> own;  // null: somebody else's
    Reactor* reactor = nullptr;
    std::unique_ptr<Inbox> inbox;
    std::unique_ptr<DeviceReader> reader;
    std::unique_ptr<RingQueues> rings;  // null: by /dev/fuse alone
  };
  explicit KernelReactors(const Options& options) : options_(options) {}

  const Options options_;
  Serving serving_;
  int device_ = -1;
  std::atomic<bool> ended_{false};
  std::atomic<bool> ringing_{false};
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace weir::client
