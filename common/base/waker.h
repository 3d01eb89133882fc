// Waker: a thread that calls `poll` whenever the time that the last poll asked for has come, or
// earlier when WakeBy says so. A mount has some. The thread begins with the first WakeBy: who is
// never asked for has none.
//
// Only daemons have one: under a manual clock the test calls what `poll` would call.
//
// Threads: WakeBy from any thread, also from inside poll, at the cost of one atomic load when an
//          earlier wake-up is armed already. `poll` runs on the Waker's thread only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "common/base/time.h"

namespace weir {

class Waker {
 public:
  // Returns when it wants to be called next at the latest; TimePoint::Max() for never.
  using Poll = std::function<TimePoint()>;

  // The clock must run in real time (SystemClock) and outlive the Waker.
  Waker(Clock& clock, Poll poll);
  ~Waker();  // stops
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // From here on WakeBy starts the thread where there is none yet.
  void Start();
  // No poll runs afterwards. Idempotent.
  void Stop();
  // Asks for a poll at `when` at the latest. Before Start and after Stop: nothing.
  void WakeBy(TimePoint when);

 private:
  void Run();

  Clock& clock_;
  const Poll poll_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Written under mutex_; read without it by WakeBy. Before Start nobody's wish is earlier.
  std::atomic<int64_t> armed_ns_{INT64_MIN};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir
