// Inbox: the requests that one reactor has taken off the kernel. Small ones are handled as they
// come; what moves much data would keep those behind it waiting, so large ones are handled one
// after the other, when what else has come is done (Reactor::Continue).
//
// While somebody waits for small requests by contract its thread runs ahead of all that take turns
// (common/base/short_turns.h), but not with a large request in its hands.
// Measured on two processors beside 80 writers at full speed: P99 of small reads 480 -> 350 us
// (tests/acceptance/isolation.py full). Running ahead at any time would cost 16 readers whom nobody
// promised anything 4 % of theirs.
//
// Threads: its reactor's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "client/fuse/request_handler.h"
#include "common/reactor/reactor.h"

namespace weir::client {

class Inbox final : private Watcher {
 public:
  // Whether its thread goes before others of the process, and runs ahead while somebody is hurried.
  enum class Weight : uint8_t { kNormal, kMost };
  // Asked before each request.
  using Hurried = std::function<bool()>;
  static constexpr size_t kLarge = 128UL << 10;  // bytes of a request that take long to move
  static constexpr size_t kMostLarge = 2;        // held back: others may take those behind them

  Inbox(Reactor& reactor, RequestHandler& handler, Weight weight, Hurried hurried)
      : reactor_(reactor), handler_(handler), weight_(weight), hurried_(std::move(hurried)) {}
  ~Inbox() override = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Before all else.
  void Enter();
  static bool IsLarge(size_t bytes) { return bytes > kLarge; }
  // Handles a small request at once, and a large one, which is borrowed until then or shared,
  // later.
  void Take(std::span<uint8_t> request);
  void TakeLarge(Buffer request);
  [[nodiscard]] bool holds_large() const { return !large_.empty(); }
  [[nodiscard]] bool full() const { return large_.size() >= kMostLarge; }
  // Handles all that it has.
  void Empty();
  // No more comes for a while: its thread takes turns.
  void Rest() { RunAhead(false); }
  // When everything taken before has been through its handler.
  void WhenHandled(std::function<void()> then);

 private:
  void OnReadable() override;  // after what is small
  void HandleLarge();
  void RunAhead(bool wanted);

  Reactor& reactor_;
  RequestHandler& handler_;
  const Weight weight_;
  const Hurried hurried_;
  bool ahead_ = false;
  std::deque<Buffer> large_;
  uint64_t large_taken_ = 0, large_handled_ = 0;
  struct Waiting {
    uint64_t large;  // that have to be handled
    std::function<void()> then;
  };
  std::deque<Waiting> waiting_;
};

}  // namespace weir::client
