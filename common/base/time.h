// Time as an argument: algorithms take a TimePoint, daemons read it from an injected Clock.
//
// Units:   int64 nanoseconds. TimePoint is monotonic and has no meaning outside one process (or one
//          simulation); WallTime is nanoseconds since 1970 and is only for what people and files
//          see.
// Threads: SystemClock may be read from any thread; ManualClock (common/testing) is also safe to
// read.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace weir {

using Duration = std::chrono::nanoseconds;

struct TimePoint {
  int64_t ns = 0;

  static constexpr TimePoint Max() { return {INT64_MAX}; }
  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;
  friend constexpr TimePoint operator+(TimePoint t, Duration d) { return {t.ns + d.count()}; }
  friend constexpr TimePoint operator-(TimePoint t, Duration d) { return {t.ns - d.count()}; }
  friend constexpr Duration operator-(TimePoint a, TimePoint b) { return Duration(a.ns - b.ns); }
  constexpr TimePoint& operator+=(Duration d) {
    ns += d.count();
    return *this;
  }
};

struct WallTime {
  int64_t ns = 0;
  friend constexpr auto operator<=>(WallTime, WallTime) = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() = 0;     // never goes backwards
  virtual WallTime WallNow() = 0;  // may step
};

// CLOCK_MONOTONIC and CLOCK_REALTIME.
class SystemClock final : public Clock {
 public:
  TimePoint Now() override;
  WallTime WallNow() override;
  static SystemClock& Get();
};

constexpr double ToSeconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-9;
}
constexpr Duration FromSeconds(double s) {
  return Duration(static_cast<int64_t>(s * 1e9));
}

}  // namespace weir
