// AioReader: small reads by Linux AIO, which answers with one switch of threads less than io_uring.
//
// A ring finishes a request in the thread that submitted it: on its completion that thread is woken
// out of whatever it waits for, only to wake the one that waits for the ring. AIO wakes the latter
// from the interrupt. Where threads wait for processors, that is a good part of a small read
// (`tools/bench isolation`). Writes gain nothing, and what is large may block while it is
// submitted. What an answer takes is short and somebody waits for it, so its thread runs ahead of
// those that copy.
//
// Threads: Read from any; answers come on the reader's own thread, and must be short.
#pragma once

#include <linux/aio_abi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace weir {

class AioReader {
 public:
  static constexpr size_t kLargest = 64 << 10;  // bytes of a read

  // Of what Read was given, with the bytes read or -errno.
  using Answer = std::function<void(void* request, int64_t result)>;

  // None: the kernel has no AIO, or no more of it to give (fs.aio-max-nr), or no descriptor.
  static std::unique_ptr<AioReader> Start(Answer answer);
  // Requires: every read was answered.
  ~AioReader();
  AioReader(const AioReader&) = delete;
  AioReader& operator=(const AioReader&) = delete;

  // `fd` must be O_DIRECT. False: not taken, as too many are under way.
  [[nodiscard]] bool Read(int fd, uint64_t offset, uint8_t* data, size_t length, void* request);

 private:
  AioReader(aio_context_t context, int ready, Answer answer)
      : context_(context), ready_(ready), answer_(std::move(answer)) {}
  void Reap();

  const aio_context_t context_;
  const int ready_;  // a descriptor that can be read from: to wake the thread with
  const Answer answer_;
  std::thread thread_;
};

}  // namespace weir
