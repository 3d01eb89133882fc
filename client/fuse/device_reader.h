// DeviceReader: takes requests off /dev/fuse for one reactor. Several readers of one mount share
// the descriptor: a request wakes one that sleeps, and while all work nobody.
//
// Threads: its reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "client/fuse/inbox.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class DeviceReader final : private Watcher {
 public:
  // Told once, by each reader, that nothing more will come, with the error: ENODEV after an
  // unmount. Not after Stop.
  using OnEnd = std::function<void(int error)>;
  // `device`: does not block.
  DeviceReader(Reactor& reactor, Inbox& inbox, int device, OnEnd on_end)
      : reactor_(reactor), inbox_(inbox), device_(device), on_end_(std::move(on_end)) {}
  ~DeviceReader() override = default;
  DeviceReader(const DeviceReader&) = delete;
  DeviceReader& operator=(const DeviceReader&) = delete;

  void Start();
  // Takes no further request, and handles what it has. Idempotent.
  void Stop();

 private:
  using Buffer = std::unique_ptr<uint8_t[]>;
  void OnReadable() override;
  bool TakeOne();  // false: there is none, or an end
  void Give(size_t bytes);
  void End(int error);
  Buffer FreeBuffer();

  Reactor& reactor_;
  Inbox& inbox_;
  const int device_;
  const OnEnd on_end_;
  bool watching_ = false;
  Buffer buffer_;
  std::vector<Buffer> free_;
};

}  // namespace weir::client
