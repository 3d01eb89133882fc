// TierLoop: bottleneck-aware allocation (or DRF, or fair) over the tiers of a scenario's device, as
// the product's TierSet does it: once a second it looks, and writes its weights over the
// operator's. One scheduler stands before all tiers, as in the paper's array; capacities
// that are not given are measured.
#pragma once

#include <array>
#include <map>

#include "osd/qos/control/bottleneck_aware.h"
#include "tools/sim/devices/tiered.h"
#include "tools/sim/engine/cluster.h"
#include "tools/sim/scenario/scenario.h"

namespace weir::sim {

class TierLoop {
 public:
  // Requires: the device of that OSD is a TieredDevice. The cluster outlives the loop.
  TierLoop(Cluster* cluster, size_t osd, const std::vector<TierSpec>& tiers,
           const AllocationConfig& config);
  TierLoop(const TierLoop&) = delete;
  TierLoop& operator=(const TierLoop&) = delete;

  // Classes that are there from now on; best-effort always is.
  void Add(const ClassSpec& spec);
  TieredDevice& device() { return static_cast<TieredDevice&>(cluster_->osd(osd_).device()); }

 private:
  void Look();
  void Apply(const std::vector<osd::qos::BottleneckAware::Weight>& weights);

  Cluster* cluster_;
  size_t osd_;
  AllocationKind kind_;
  osd::qos::BottleneckAware loop_;
  std::map<ClassId, ClassSpec> classes_;  // as the operator has them
  std::array<uint64_t, osd::qos::kTiersMax> completed_{};
  std::array<Duration, osd::qos::kTiersMax> busy_{};
};

}  // namespace weir::sim
