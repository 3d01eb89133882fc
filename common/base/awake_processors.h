// AwakeProcessors: keeps the processors of this machine from sleeping while few requests at a time
// are under way, each of which waits for one thread after the other.
//
// A metadata operation of a cluster passes some ten threads, one at a time. Whoever has nothing to
// do in between sleeps, and is woken for the next step: from a deep sleep, and in virtual machines
// from any, that takes 50 to 200 us, more than the step. With many under way nobody waits for that,
// and processors that do not rest take clock rate and execution units from those that work.
// A small read is such a request too where its disk is quick. Beside a slow one the steps are
// nothing, and as long as others of its kind are held back by their class, they are not counted.
//
// Measured, two virtual processors, medians of three runs in turns, without and with: 4 KiB reads
// by one job through a cluster 132 -> 75 us (p50), embedded 90 -> 55 us, durable writes embedded no
// difference. Looking before a sleep (adaptive_poll.h) does not replace it: it ends after 50 us,
// and the threads of other processes and of the kernel do not look.
//
// Source: PM QoS, /dev/cpu_dma_latency (pm_qos_interface.rst of the kernel). It holds for all
// processors at once, needs root, and ends with the process.
// Threads: Began, Ended and Took from any thread, some atomic operations each; Poll from one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/time.h"
#include "common/base/waker.h"

namespace weir {

class AwakeProcessors {
 public:
  static constexpr Duration kStep = std::chrono::milliseconds(1);
  static constexpr Duration kStepInCrowds = std::chrono::milliseconds(4);
  // After the last request: whoever asks for one thing after the other thinks in between.
  static constexpr Duration kLinger = std::chrono::milliseconds(5);
  // Without requests for so long, nobody looks until the next one.
  static constexpr Duration kDoze = std::chrono::milliseconds(50);
  // Others under way when a request begins, on average: up to kFew they are kept awake, from kMany
  // on not.
  static constexpr double kFew = 4;
  static constexpr double kMany = 8;
  // Of a read that took longer, steps were little.
  static constexpr Duration kQuick = std::chrono::milliseconds(2);

  // Takes effect, or ends it. Called by Poll and by the destructor.
  using Keep = std::function<void(bool awake)>;
  AwakeProcessors(Clock& clock, Keep keep);
  ~AwakeProcessors();

  // Whether this process may.
  static bool MayKeepAwake();
  // By PM QoS, and running; null where this process may not.
  static std::unique_ptr<AwakeProcessors> OfThisMachine(Clock& clock);

  void Began();
  void Ended() { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  // Of one that was not said to begin, when it is answered: whether it was worth it shows only
  // then.
  void Took(Duration duration);
  [[nodiscard]] Clock& clock() const { return clock_; }

  // Calls Poll by itself from here on. The clock runs in real time then.
  void Start() {
    waker_.Start();
    waker_.WakeBy(clock_.Now());
  }
  // Looks at what began since the last time. When to look again; Max: when Began says so.
  TimePoint Poll();

 private:
  void KeepAwake(bool awake);
  void Wake();
  void LearnBegun(TimePoint now);
  void LearnTook(TimePoint now);

  Clock& clock_;
  const Keep keep_;
  std::atomic<uint64_t> under_way_{0};
  std::atomic<uint64_t> began_{0};
  std::atomic<uint64_t> beside_{0};  // under way when one began, summed over all that did
  std::atomic<int64_t> took_ns_{0};  // summed over all that were quick
  std::atomic<bool> dozes_{true};

  // Of Poll.
  uint64_t seen_began_ = 0;
  uint64_t seen_beside_ = 0;
  double crowd_ = 0;      // beside one, lately
  TimePoint last_begun_;  // something began
  int64_t seen_took_ns_ = 0;
  double under_way_of_took_ = 0;  // lately, of those that Took tells of
  TimePoint last_took_;
  TimePoint last_poll_;
  bool awake_ = false;

  Waker waker_;  // last: stops before what it uses goes
};

}  // namespace weir
