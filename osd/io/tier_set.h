// TierSet: an OSD of several disks ("tiers": an SSD and an HDD, say), each with its own store and
// pipeline, and the loop that decides who gets how much of them together.
//
//   Submit ─► the tier of the file's layout ─► its Dispatcher ─► its store
//      └────► hit ratios ─► BottleneckAware (baa | drf | fair) ─► weights of all Dispatchers
//
// An object lies on the tier that its file's layout names, which cannot change once the file has
// data; where this OSD has no such tier, and where none is named, on the first. Nothing is looked
// up. Deletes of a whole file go to every tier.
//
// The schedulers of the tiers know of each other by TierDelays, so that with sharing `total` (and,
// within its bounds, `hybrid-h`) a weight is a share of the class's total over the tiers: that is
// what the computed weights mean (RULES.md A35). Bottleneck-aware and DRF weights are written
// over those of the operator, which remain what users count for; the sum stays as it was. Classes
// of the system keep theirs.
//
// Units:   requests per second where capacities of tiers are meant, else bytes.
// Threads: those of the Dispatchers' loop, which is one; TotalStore from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "common/base/tier_name.h"
#include "osd/io/background_gate.h"
#include "osd/io/dispatcher.h"
#include "osd/io/tier_delays.h"
#include "osd/qos/control/bottleneck_aware.h"

namespace weir::osd {

class TierSet {
 public:
  struct Tier {
    TierName name;
    ObjectStore* store = nullptr;
    uint64_t token_rate = 0;  // as measured at mkfs
  };
  struct Report {
    TierName name;
    StoreStats store;
    uint64_t token_rate = 0;
    DispatcherStats stats;  // of the first tier: as Stats of its Dispatcher was asked
    double busy = 0;
    double requests_per_s = 0;
  };

  // `first` serves tiers[0] and is told its configuration here; it, the stores and the clock
  // outlive the set. Requires: 2 to kTiersMax tiers.
  TierSet(Dispatcher& first, std::vector<Tier> tiers, Clock& clock, bool meter_background);
  ~TierSet();  // Requires: WhenIdle

  void Submit(std::unique_ptr<ObjectOp> op, TierName tier);

  // As Dispatcher::Apply. The token rate is that of the slowest tier; if it is not what was
  // measured there, the others' are changed in proportion.
  void Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes);
  // The loop that divides the tiers, when it is due; returns when to call again. Pipelines wake
  // themselves.
  TimePoint Poll();
  // What admission has booked of each tier.
  void SetBooked(uint64_t bytes_per_s);
  // One of the tiers has become slower than promised.
  [[nodiscard]] bool disk_is_slow() const;
  // For a clean end of the further tiers; the first is its owner's. Any thread but the loop's.
  void CloseGates();
  void BeginDrain();
  // Runs `idle` once nothing is outstanding on the further tiers.
  void WhenIdle(const std::function<void()>& idle);
  [[nodiscard]] bool idle() const;

  [[nodiscard]] Dispatcher& dispatcher(size_t tier) { return At(tier); }
  // `first`: what the first tier's Dispatcher has said, which is reset by who asks it.
  std::vector<Report> Reports(const DispatcherStats& first, bool reset, bool flows = false);
  [[nodiscard]] std::vector<qos::BottleneckAware::Division> Divisions() const;
  // In the schedulers now, by class.
  [[nodiscard]] std::map<ClassId, double> Weights() const;
  // Of all tiers together.
  [[nodiscard]] StoreStats TotalStore() const;
  // Of the disk where Submit brings what names that tier.
  [[nodiscard]] uint64_t FreeBytes(TierName tier) const;
  [[nodiscard]] std::map<ClassId, OsdClassTimes> Times();
  // Of the slowest tier, by which promises are weighed.
  [[nodiscard]] qos::ServiceReport Measures();

 private:
  struct Further {
    std::unique_ptr<Dispatcher> dispatcher;
    std::shared_ptr<BackgroundGate> gate;
  };
  static constexpr Duration kLook = std::chrono::seconds(1);

  [[nodiscard]] Dispatcher& At(size_t tier) {
    return tier == 0 ? first_ : *further_[tier - 1].dispatcher;
  }
  [[nodiscard]] size_t IndexOf(TierName name) const;
  void SubmitToAll(std::unique_ptr<ObjectOp> op);
  [[nodiscard]] SchedulerConfig ConfigOf(size_t tier, const SchedulerConfig& config) const;
  void TakeClasses(const std::vector<ClassSpec>& classes, TimePoint now);
  [[nodiscard]] std::vector<ClassSpec> Weighted() const;
  void ApplyToAll();  // requires changing_
  bool Look(TimePoint now, const std::vector<DispatcherActivity>& activity);

  Dispatcher& first_;
  const std::vector<Tier> tiers_;
  const size_t slowest_;
  Clock& clock_;
  std::vector<Further> further_;

  SchedulerConfig config_;
  std::vector<ClassSpec> classes_;
  std::set<ClassId> sharing_;  // those among whom the tiers are divided
  qos::BottleneckAware loop_;
  std::map<ClassId, double> shares_;  // what the loop has said last; they sum to 1
  TierDelays delays_;
  std::vector<DispatcherActivity> seen_;
  std::vector<double> busy_;
  TimePoint looked_;
};

}  // namespace weir::osd
