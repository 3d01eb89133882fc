// TickPace: how long a thread that ticks sleeps: briefly while something happens, long when nothing
// has for a while. What depends on time is then up to that much later; who begins something anew
// wakes the thread.
//
// Threads: Used from any; the rest from the thread that ticks, which sleeps on a condition of its
//          own.
#pragma once

#include <algorithm>
#include <atomic>

#include "common/base/time.h"

namespace weir {

class TickPace {
 public:
  struct Options {
    Duration brief = std::chrono::milliseconds(100);
    Duration lengthy = std::chrono::seconds(1);
    Duration settles = std::chrono::seconds(5);  // unused for so long
  };
  TickPace() : TickPace(Options()) {}
  explicit TickPace(Options options)
      : options_(options), most_quiet_(options.settles / options.brief) {}

  // Something happens. True: the thread is in a long sleep, to be woken by a notification under the
  // lock of its condition.
  [[nodiscard]] bool Used() {
    if (state_.load(std::memory_order_relaxed) == State::kUsed) return false;
    return state_.exchange(State::kUsed) == State::kLongSleep;
  }

  // After a tick, under that lock: how long to sleep. `busy`: something is under way.
  [[nodiscard]] Duration Next(bool busy) {
    const bool used = state_.exchange(State::kQuiet) == State::kUsed;
    quiet_ = used || busy ? 0 : std::min(quiet_ + 1, most_quiet_);
    State quiet = State::kQuiet;
    long_sleep_ = quiet_ == most_quiet_ && state_.compare_exchange_strong(quiet, State::kLongSleep);
    return long_sleep_ ? options_.lengthy : options_.brief;
  }
  // While it sleeps: the sleep was to be long, and something has happened.
  [[nodiscard]] bool woken() const { return long_sleep_ && state_.load() == State::kUsed; }

 private:
  enum class State : uint8_t { kUsed, kQuiet, kLongSleep };

  const Options options_;
  const int64_t most_quiet_;  // ticks
  std::atomic<State> state_{State::kUsed};
  int64_t quiet_ = 0;  // ticks since it was used
  bool long_sleep_ = false;
};

}  // namespace weir
