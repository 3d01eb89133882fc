// RequestHandler: what becomes of one request of the kernel. libfuse gets most, and calls our
// operations; interrupts and marks of the barrier never reach it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "common/base/buffer.h"
#include "common/base/result.h"

struct fuse_session;

namespace weir::client {

// The kernel's number of the request that this thread has handed to libfuse; in its handler.
uint64_t RequestNumber();
// And what it asks for, as linux/fuse.h numbers it.
uint32_t RequestOpcode();
// Whether a write costs the file its set-id bits, as the writer may not keep them.
bool RequestDropsSetIds();
// The bytes that a read asks for; 0 of anything else.
uint32_t RequestReadBytes();
// Data of that request: borrowed for as long as its handler runs, or, of half a MiB and more,
// for as long as it is wanted.
Buffer RequestData(std::span<const uint8_t> data);

// Has the answer to FUSE_INIT say what libfuse cannot (init_reply.h). Once, before anything serves
// a session that is mounted.
Status CompleteInitReply(fuse_session* session);

// Threads: any, several at a time.
class RequestHandler {
 public:
  struct Hooks {
    // The kernel's first request, when it has been answered.
    std::function<void(std::span<const uint8_t> init)> on_init;
    // Of the request with that number.
    std::function<void(uint64_t number)> on_interrupt;
    std::function<void(uint64_t mark)> on_mark;
    std::function<void()> on_request;
  };
  RequestHandler(fuse_session* session, Hooks hooks)
      : session_(session), hooks_(std::move(hooks)) {}

  // What the answer to FUSE_INIT says besides, where the kernel offers it. Before that.
  void Want(uint64_t init_flags) { more_init_flags_ |= init_flags; }
  // `request`: with its header; changed.
  void Handle(const Buffer& request);

 private:
  void GiveToLibfuse(const Buffer& request);

  fuse_session* const session_;
  const Hooks hooks_;
  uint64_t more_init_flags_ = 0;
};

}  // namespace weir::client
