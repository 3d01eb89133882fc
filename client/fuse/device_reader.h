// DeviceReader: takes requests off /dev/fuse for one reactor.
//
// The first reader of a mount takes what comes. When it has been busy for long, or has a large
// request in its hands, for which others would wait, it calls the next one for help, and that one
// the next. Who helps shares the descriptor: a request wakes one that sleeps, and while all work
// nobody. He leaves when he has not been called for a while. So what one process asks for, one
// request after the other, is not spread over threads, each of which would have to wake for it.
//
// Threads: its reactor's; Help from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "client/fuse/inbox.h"
#include "common/base/buffer.h"
#include "common/base/time.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class DeviceReader final : private Watcher {
 public:
  // Told once, by each reader, that nothing more will come, with the error: ENODEV after an
  // unmount. Not after Stop.
  using OnEnd = std::function<void(int error)>;
  struct Options {
    int device = -1;               // does not block
    DeviceReader* next = nullptr;  // whom it calls for help, if any
    OnEnd on_end;
  };
  DeviceReader(Reactor& reactor, Inbox& inbox, Options options)
      : reactor_(reactor), inbox_(inbox), options_(std::move(options)) {}
  ~DeviceReader() override = default;
  DeviceReader(const DeviceReader&) = delete;
  DeviceReader& operator=(const DeviceReader&) = delete;

  // `helps`: only when it is called.
  void Start(bool helps);
  // Another one would be glad of it. Not after the reactor has ended.
  void Help();
  // Takes no further request, and handles what it has. Idempotent.
  void Stop();

 private:
  enum class Taken : uint8_t { kOne, kNothing, kEnd };
  void OnReadable() override;
  Taken TakeOne();
  void BeginToWatch();
  void LeaveIfIdle();
  void CallIfBusy();
  void Give(size_t bytes);
  void End(int error);
  Buffer Room();

  Reactor& reactor_;
  Inbox& inbox_;
  const Options options_;
  bool helps_ = false;
  bool stopped_ = false;
  bool watching_ = false;
  TimePoint looked_at_;              // when it was last asked how busy its reactor is
  Duration waited_{0};               // of the reactor, then
  std::atomic<bool> called_{false};  // it helps, or is about to
  std::atomic<int64_t> called_at_{0};
  size_t bytes_ = 0;           // taken in this turn
  Buffer room_;                // for the next request
  std::deque<Buffer> in_use_;  // of large requests, until nobody wants them any more
};

}  // namespace weir::client
