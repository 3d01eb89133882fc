#include "common/base/time.h"

#include <ctime>

namespace weir {
namespace {
int64_t Read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}
}  // namespace

TimePoint SystemClock::Now() {
  return {Read(CLOCK_MONOTONIC)};
}
WallTime SystemClock::WallNow() {
  return {Read(CLOCK_REALTIME)};
}

SystemClock& SystemClock::Get() {
  static SystemClock clock;
  return clock;
}

}  // namespace weir
