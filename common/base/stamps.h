// Stamps: the times that one party gives to what happens to files. They never go back, and follow
// those of other parties that this one has heard of: so they are in the order of events as far as
// anybody could see it, also where clocks differ, by up to kClocksDiffer. A clock that goes back by
// more than that was set, and is followed.
//
// Units:   nanoseconds since 1970.
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "common/base/time.h"

namespace weir {

class Stamps {
 public:
  static constexpr Duration kClocksDiffer = std::chrono::seconds(10);

  explicit Stamps(Clock& clock) : clock_(clock) {}

  // Of something that happens now.
  int64_t Next() {
    const int64_t now = clock_.WallNow().ns;
    int64_t last = last_.load(std::memory_order_relaxed);
    for (;;) {
      const bool ahead = last > now && last - now <= kClocksDiffer.count();
      const int64_t next = ahead ? last : now;
      if (next == last || last_.compare_exchange_weak(last, next)) return next;
    }
  }

  // Another party has given that one. Returns what it counts as here: now, when its clock is too
  // far ahead.
  int64_t Saw(int64_t stamp) {
    int64_t last = last_.load(std::memory_order_relaxed);
    if (stamp <= last) return stamp;
    const int64_t now = clock_.WallNow().ns;
    if (stamp > now && stamp - now > kClocksDiffer.count()) return Next();
    while (last < stamp && !last_.compare_exchange_weak(last, stamp)) {
    }
    return stamp;
  }

 private:
  Clock& clock_;
  std::atomic<int64_t> last_{INT64_MIN};
};

}  // namespace weir
