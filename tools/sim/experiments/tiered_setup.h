// What the BAA experiments share: an array of an HD and an SSD behind one scheduler, and clients
// that send a fixed fraction of their requests to the SSD.
#pragma once

#include <memory>
#include <vector>

#include "osd/qos/control/bottleneck_aware.h"
#include "osd/qos/control/bottleneck_solver.h"
#include "tools/sim/devices/tiered.h"
#include "tools/sim/engine/cluster.h"
#include "tools/sim/experiment.h"

namespace weir::sim {

// The array's own depth, shared by both tiers: with less, a saturated tier fills all slots (A35).
inline constexpr uint32_t kArrayDepth = 128;

constexpr ClassId TierClientId(size_t i) {
  return ClassId(16 + static_cast<uint32_t>(i));
}

osd::qos::Tiers HdAndSsd(double hd_iops, double ssd_iops);
std::vector<osd::qos::TierClient> ClientsOf(const std::vector<double>& hits);

// Sends with this probability to tier 1, else to tier 0.
std::function<void(Prng&, uint64_t, Io*)> HitsOf(double hit);

// Always backlogged clients before the array, with exponential service times.
class TieredArray {
 public:
  TieredArray(uint64_t seed, const osd::qos::Tiers& tiers);

  // Clients in the order of their ids; `hit` may change on the way.
  void Start(const std::vector<double>& hits);
  void SetHit(size_t client, double hit) { hits_[client] = hit; }
  void SetWeights(const std::vector<double>& weights);

  Cluster& cluster() { return cluster_; }
  [[nodiscard]] double Iops(size_t client, Duration from, Duration to) const {
    return loads_[client]->Iops(from, to);
  }
  [[nodiscard]] const Load& load(size_t client) const { return *loads_[client]; }
  TieredDevice& device() { return static_cast<TieredDevice&>(cluster_.osd().device()); }

 private:
  Cluster cluster_;
  std::vector<double> hits_;
  std::vector<Load*> loads_;
};

// An array whose weights the product's loop sets, from what it sees: it begins with equal weights.
class LoopedArray {
 public:
  LoopedArray(uint64_t seed, const osd::qos::BottleneckAware::Options& options,
              const std::vector<double>& hits);
  void Freeze() { frozen_ = true; }
  void RunTo(Duration end) { array_.cluster().RunTo(end); }
  TieredArray& array() { return array_; }
  [[nodiscard]] const TieredArray& array() const { return array_; }
  [[nodiscard]] uint64_t solved() const { return loop_.solved(); }

 private:
  TimePoint Now() { return array_.cluster().events().now(); }
  void Watch();

  TieredArray array_;
  osd::qos::BottleneckAware loop_;
  uint64_t completed_[2] = {};
  Duration busy_[2] = {};
  bool frozen_ = false;
};

struct TieredResult {
  std::vector<double> iops;  // per client
  std::vector<double> busy;  // per tier, 1 being full
  [[nodiscard]] double total() const;
};

// Runs the array under a policy of the product's loop, which learns the hit ratios as it runs. A
// run whose weights are frozen has equal ones.
TieredResult RunLoop(Run& run, AllocationKind kind, const osd::qos::Tiers& tiers,
                     const std::vector<double>& hits);

// Runs the array with weights that stay. A run whose weights are frozen has equal ones.
TieredResult RunArray(Run& run, const osd::qos::Tiers& tiers, const std::vector<double>& hits,
                      std::vector<double> weights);

// The three policies of the paper's figures for these clients.
enum class TierPolicy : uint8_t { kFairQueueing, kDominantResource, kBottleneckAware };
std::vector<double> WeightsOf(TierPolicy policy, const osd::qos::Tiers& tiers,
                              const std::vector<double>& hits);

}  // namespace weir::sim
