// ManualClock: time that moves only when the test says so.
#pragma once

#include <atomic>

#include "common/base/time.h"

namespace weir::testing {

class ManualClock final : public Clock {
 public:
  TimePoint Now() override { return {now_.load()}; }
  WallTime WallNow() override { return {wall_offset_ + now_.load()}; }
  void Advance(Duration d) { now_ += d.count(); }
  void Set(TimePoint t) { now_ = t.ns; }

 private:
  std::atomic<int64_t> now_{0};
  int64_t wall_offset_ = 1'700'000'000'000'000'000;
};

}  // namespace weir::testing
