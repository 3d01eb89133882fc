#include "tools/sim/oracles/shadow_disk.h"

#include <algorithm>

namespace weir::sim {

TimePoint ShadowDisk::Serve(TimePoint arrival, Duration device_time) {
  done_ = std::max(arrival, done_) + FromSeconds(ToSeconds(device_time) / share_);
  return done_;
}

double LatencyVerdict::late_part() const {
  return requests == 0 ? 0 : static_cast<double>(late) / static_cast<double>(requests);
}

double LatencyVerdict::fault_part() const {
  return requests == 0 ? 0 : static_cast<double>(faults) / static_cast<double>(requests);
}

LatencyVerdict JudgeLatency(const Load& load, double share, Duration bound, Duration slack) {
  LatencyVerdict verdict;
  ShadowDisk shadow(share);
  for (const Completion& done : load.completions()) {
    const TimePoint reference = shadow.Serve(done.sent, done.device_time);
    const Duration latency = done.when - done.sent;
    ++verdict.requests;
    if (latency > bound) ++verdict.late;
    if (latency > bound + slack && reference - done.sent <= bound) ++verdict.faults;
  }
  return verdict;
}

double DeviceShare(const Load& load, Duration from, Duration to) {
  Duration used{0};
  for (const Completion& done : load.completions()) {
    if (done.when.ns > from.count() && done.when.ns <= to.count()) used += done.device_time;
  }
  return ToSeconds(used) / ToSeconds(to - from);
}

double PeakEquivalent(const Load& load, double peak, Duration from, Duration to) {
  return peak * DeviceShare(load, from, to);
}

}  // namespace weir::sim
