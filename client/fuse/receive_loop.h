// Takes the kernel's requests off a session and hands them to libfuse, which calls our operations.
//
// The kernel's queue knows no classes: whoever comes to its end waits until all before him was
// taken off. With large writes under way and the processors busy most of them would stand there,
// and everybody behind them; so the threads that do it can go before others of the process, and
// while somebody waits for small requests by contract they run ahead of all that take turns
// (common/base/short_turns.h). Not with a large request in their hands: what moves much data would
// keep small ones waiting once more. So some are on their way with a large one, and there are more
// than one for each processor.
// Measured on two processors beside 80 writers at full speed: P99 of small reads 480 -> 350 us
// (tests/acceptance/isolation.py full).
// Running ahead at any time would cost 16 readers whom nobody promised anything 4 % of theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

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

// Has the answer to FUSE_INIT say what libfuse cannot (init_reply.h). Once, before anything serves
// a session that is mounted.
Status CompleteInitReply(fuse_session* session);

// Threads: Serve from one; Stop from any other.
class ReceiveLoop {
 public:
  // `on_init`: runs with the kernel's first request when it has been answered. May be empty.
  using OnInit = std::function<void(std::span<const uint8_t> request)>;
  // Whether its threads go before others of the process, and run ahead while somebody is hurried.
  enum class Weight : uint8_t { kNormal, kMost };
  // Asked before each request.
  using Hurried = std::function<bool()>;
  ReceiveLoop(fuse_session* session, Weight weight, Hurried hurried, OnInit on_init)
      : session_(session),
        weight_(weight),
        hurried_(std::move(hurried)),
        on_init_(std::move(on_init)) {}

  // Serves with so many threads, this one among them, until the file system is unmounted or Stop
  // was called: 0. Else the first error, negative.
  int Serve(uint32_t threads);
  // No further request is taken off once it returns; those that were may still be under way.
  void Stop();

  // How often each thread has begun or ended a turn. HavePassed: each was between two at that time,
  // has ended its turn since, or sleeps in the kernel.
  [[nodiscard]] std::vector<uint64_t> Turns() const;
  [[nodiscard]] bool HavePassed(const std::vector<uint64_t>& since) const;

 private:
  struct alignas(64) Taker {
    std::atomic<int> thread{0};      // as the kernel numbers it
    std::atomic<uint64_t> turns{0};  // odd: takes a request, or handles it
    std::atomic<bool> taking{false};
    [[nodiscard]] bool Passed(uint64_t since) const;
  };
  int ServeAlone(Taker* taker);
  void Process(void* buffer);

  fuse_session* const session_;
  const Weight weight_;
  const Hurried hurried_;
  const OnInit on_init_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<pthread_t> serving_;  // threads that have not ended
  std::deque<Taker> takers_;
};

}  // namespace weir::client
