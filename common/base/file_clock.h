// FileClock: the system's clock, its wall time as the kernel would stamp a file with it right now.
//
// A kernel stamps with a clock that ticks every few milliseconds, and from 6.13 on no earlier than
// any finer stamp that it gave to a file of some filesystem. So a time of CLOCK_REALTIME lies ahead
// of what the kernel writes next, one of CLOCK_REALTIME_COARSE may lie behind what it wrote. Here a
// file of the kernel's own is stamped and looked at: whoever shares the stamping of files with the
// kernel gets times in one order with its.
//
// Costs two system calls, some 1 us. Without such a file it is CLOCK_REALTIME.
// Threads: any.
#pragma once

#include "common/base/time.h"

namespace weir {

class FileClock final : public Clock {
 public:
  TimePoint Now() override { return SystemClock::Get().Now(); }
  WallTime WallNow() override;
  static FileClock& Get();

 private:
  FileClock();
  const int file_;  // -1: there is none
};

}  // namespace weir
