// Watchdog: tells the service manager that a loop goes on, by a timer of that loop: one whose tasks
// hang says nothing, and the service manager ends the process and starts another.
// Threads: made and destroyed on any, while the loop runs.
#pragma once

#include <memory>
#include <optional>

#include "common/base/time.h"
#include "common/reactor/loop.h"

namespace weir {

class Watchdog {
 public:
  // None: nobody watches. The loop outlives it.
  Watchdog(Loop& loop, Clock& clock, std::optional<Duration> alive_every);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Tell();

  Loop& loop_;
  Clock& clock_;
  const std::optional<Duration> every_;
  LoopTimer timer_ = 0;  // of the loop's thread
};

}  // namespace weir
