// ShadowDisk: what a private disk of share f would have done with the same requests (Yan and Jiang
// §3.1; RULES.md §5, O4), given the device time each of them took:
//
//   ref_done = max(arrival, ref_prev) + t / f
//
// A latency bound is only owed where the private disk would have kept it.
#pragma once

#include "tools/sim/engine/load.h"

namespace weir::sim {

class ShadowDisk {
 public:
  explicit ShadowDisk(double share) : share_(share) {}

  // Requests in the order of their service. When the private disk is done with this one.
  TimePoint Serve(TimePoint arrival, Duration device_time);

 private:
  double share_;
  TimePoint done_{};
};

struct LatencyVerdict {
  uint64_t requests = 0;
  uint64_t late = 0;    // beyond the bound
  uint64_t faults = 0;  // late by more than the slack although the private disk was on time
  [[nodiscard]] double late_part() const;
  [[nodiscard]] double fault_part() const;
};

// Judges a whole load. `slack`: what the disks share and cannot take back, a request of each other.
LatencyVerdict JudgeLatency(const Load& load, double share, Duration bound, Duration slack);

// PE (RULES.md §5): the peak rate that a private disk would need to do what the load's disk did
// in (from, to], `peak` being that of the device. Units of `peak`.
double PeakEquivalent(const Load& load, double peak, Duration from, Duration to);
// The part of the device's time that the load had in (from, to].
double DeviceShare(const Load& load, Duration from, Duration to);

}  // namespace weir::sim
