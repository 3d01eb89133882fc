// KernelReactors: the threads that take the kernel's requests and run their handlers, all alike.
//
// The kernel's queue knows no classes: whoever comes to its end waits until all before him was
// taken off; so there is more than one, and each takes small requests before it goes on with large
// ones (inbox.h).
// Threads: Start and the destructor from one; Stop from any but a reactor's; the rest from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client/fuse/device_reader.h"
#include "client/fuse/inbox.h"
#include "client/fuse/request_handler.h"
#include "common/base/result.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class KernelReactors {
 public:
  static constexpr uint32_t kMost = 4;
  struct Options {
    uint32_t count = 2;  // at most kMost
    Inbox::Weight weight = Inbox::Weight::kNormal;
    Inbox::Hurried hurried;
    // Told once that the mount has ended, with the error; on a reactor. Not after Stop.
    std::function<void(int error)> on_end;
  };
  // kIo: the machine has no reactor left.
  static Result<std::unique_ptr<KernelReactors>> Create(Options options);
  ~KernelReactors();  // ends the threads
  KernelReactors(const KernelReactors&) = delete;
  KernelReactors& operator=(const KernelReactors&) = delete;

  // `device`: the kernel's end of the mount, from now on without blocking.
  void Start(int device, RequestHandler& handler);
  // No further request is taken off once it returns; those that were have been through their
  // handlers, and may still be under way.
  void Stop();

  [[nodiscard]] Reactor& first() const { return *members_.front()->reactor; }
  // Has the kernel put `mark` behind everything that it has queued. How often it will come.
  [[nodiscard]] size_t Mark(uint64_t mark) const;
  // Runs `then`, on one of the reactors, when everything that had been taken off has been through
  // its handler.
  void WhenHandled(const std::function<void()>& then);

 private:
  struct Member {
    std::unique_ptr<Reactor> reactor;
    std::unique_ptr<Inbox> inbox;
    std::unique_ptr<DeviceReader> reader;
  };
  explicit KernelReactors(Options options) : options_(std::move(options)) {}

  const Options options_;
  int device_ = -1;
  std::atomic<bool> ended_{false};
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace weir::client
