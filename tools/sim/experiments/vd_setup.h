// What the virtual disk experiments share: the paper's two disks, contracts, and flows of 512-byte
// requests with a given spatial locality.
#pragma once

#include <memory>

#include "tools/sim/devices/hdd.h"
#include "tools/sim/engine/cluster.h"
#include "tools/sim/experiment.h"

namespace weir::sim {

inline constexpr uint64_t kSector = 512;
inline constexpr double kFastPeak = 4500, kSlowPeak = 3410;  // sequential requests per second
inline constexpr ClassId kLargeDisk{16}, kSmallDisk{17}, kThirdDisk{18};

// Profile vd, one request on the disk at a time. Averages of throughput disks go back to their
// start, as in the paper.
SchedulerConfig VdConfig();
// The same as this run may have broken it.
SchedulerConfig VdConfigFor(const Run& run);

ClassSpec RentADisk(ClassId id, double peak);
ClassSpec LatencyDisk(ClassId id, double peak, Duration bound);
ClassSpec ThroughputDisk(ClassId id, double peak, double requests_per_s, double tolerance);

// A flow whose next request is adjacent to the last with probability `locality`, else anywhere in
// [base, base + span). The locality may change on the way.
class LocalFlow {
 public:
  LocalFlow(uint64_t base, uint64_t span, double locality)
      : state_(std::make_shared<State>(State{base, span, locality, base})) {}

  void SetLocality(double locality) { state_->locality = locality; }
  [[nodiscard]] std::function<void(Prng&, uint64_t, Io*)> shape() const;

 private:
  struct State {
    uint64_t base, span;
    double locality;
    uint64_t next;
  };
  std::shared_ptr<State> state_;
};

// The first or second gigabyte of a disk: far enough apart to be different disks.
LocalFlow FlowOn(int half, double locality);

// The two disks of the paper; `catalogue` takes the data sheets' seek times instead of those that
// the paper gives.
DeviceFactory FastDisk(bool catalogue = false);
DeviceFactory SlowDisk(bool catalogue = false);

}  // namespace weir::sim
