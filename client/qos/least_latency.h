// LeastLatency: how soon, at the soonest, a request that leaves now is answered, from what was seen
// lately: the least of the last second, zero until that has answers at ten moments, the first of
// them half a second ago. (Many at once may all have waited for the same.)
//
// A minimum is what noise does not lower: whoever stood still or waited behind others only took
// longer. A lower one counts from the answer that shows it, a higher one when a second has shown
// nothing lower: a queue at an OSD grows and shrinks, and whoever comes waits behind it. Never more
// than kMost, so that a wrong one costs no more than that.
//
// Pure. Threads: not safe. `now` may go backwards a little.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/time.h"

namespace weir::client {

class LeastLatency {
 public:
  static constexpr Duration kSlot = std::chrono::milliseconds(100);
  static constexpr int64_t kSlots = 10;
  static constexpr Duration kKnown = std::chrono::milliseconds(500);
  static constexpr uint32_t kEnough = 10;  // moments
  static constexpr Duration kApart = std::chrono::milliseconds(10);
  static constexpr Duration kMost = std::chrono::milliseconds(250);

  void Saw(Duration latency, TimePoint now);
  [[nodiscard]] Duration At(TimePoint now);

 private:
  struct Slot {
    Duration least = kMost;
    uint32_t moments = 0;
  };
  Slot& SlotAt(int64_t index) { return slots_[static_cast<size_t>(index % kSlots)]; }
  void Turn(TimePoint now);

  std::array<Slot, kSlots> slots_;  // in turns
  int64_t slot_ = 0;                // the one that is on, counted from time zero
  Slot all_;
  TimePoint since_, last_;  // the first and the last moment
};

}  // namespace weir::client
