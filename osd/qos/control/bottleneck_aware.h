// BottleneckAware: the control loop of BAA (Wang and Varman, FAST'14, Algorithm 1; RULES.md
// §6.6). It watches which tier each class's requests go to, solves for the division that does most
// without making anybody envious, and hands out weights for a proportional scheduler: one SFQ(D) in
// front of all tiers, or TOTAL-DSFQ over OSDs of different tiers (A35), cost `requests`.
//
//   Count(class, tier)  every request          Observe(tiers)  once a second      Tick  when due
//
// It solves every period, and between periods when an alarm says that the mix has changed: one tier
// idles (busy below 80 %) while another is full (above 98 %), at most once a second. New weights
// are handed out only if a class came or some share moved by more than 2 % of itself (hysteresis,
// A34).
//
// Who counts (A33): classes with requests in their window. The others keep the fractions that they
// had, and a newcomer is taken to load all tiers equally; both get the weight of their fair share,
// so that they can begin.
//
// Units: requests per second. Threads: one owner. Pure. Errors: none; without capacities for all
// tiers it keeps silent.
#pragma once

#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/qos/qos_config.h"
#include "osd/qos/control/bottleneck_solver.h"
#include "osd/qos/control/hit_window.h"
#include "osd/qos/control/tier_meter.h"

namespace weir::osd::qos {

class BottleneckAware {
 public:
  struct Options {
    Tiers tiers;  // a capacity of 0 is measured
    Duration period = std::chrono::seconds(1);
    HitWindow::Options window{};
    bool alarm = true;
    AllocationKind kind = AllocationKind::kBottleneckAware;
    // For tiers that are measured: what they are taken to do before they have been seen full, if
    // they have not done more. Too much is soon seen, since it fills the tier. 0: until then
    // nothing is solved.
    PerTier nominal{};
  };
  // What was found out about a class, and decided.
  struct Division {
    ClassId id;
    PerTier use{};          // part of its requests that goes to each tier
    size_t bottleneck = 0;  // tier
    double fair_rate = 0;   // of a static partition among the active, requests per second
    double rate = 0;
    bool active = false;  // had requests in its window
  };
  struct Weight {
    ClassId id;
    double weight;  // all of them sum to 1
  };

  BottleneckAware(const Options& options, TimePoint now);

  // The operator's word; unknown classes begin with weight 1 when they send something.
  void SetWeight(ClassId id, double weight, TimePoint now) { Find(id, now).weight = weight; }
  void Remove(ClassId id) { classes_.erase(id); }

  // The operator's word too; solves at the next Tick. A window of another size begins anew.
  void Configure(const AllocationConfig& config, TimePoint now);

  // A request of the class goes to that tier.
  void Count(ClassId id, size_t tier, TimePoint now);
  // What each tier did since the last call. Requires: one entry per tier.
  void Observe(std::span<const TierActivity> activity, TimePoint now);

  // Solves if it is time to. The weights of all known classes by id if they are to change, else
  // none.
  std::vector<Weight> Tick(TimePoint now);
  [[nodiscard]] TimePoint NextTick() const { return next_solve_; }

  // The last solution, for people.
  [[nodiscard]] const BottleneckAllocation& allocation() const { return allocation_; }
  [[nodiscard]] const std::vector<Division>& divisions() const { return divisions_; }
  // The capacities to solve with; 0 where there is neither a configured nor a measured one.
  [[nodiscard]] Tiers CurrentTiers() const;
  [[nodiscard]] uint64_t solved() const { return solved_; }

 private:
  static constexpr Duration kAlarmPause = std::chrono::seconds(1);
  static constexpr double kIdle = 0.80;
  static constexpr double kMoved = 0.02;  // of itself

  struct Class {
    double weight = 1;
    HitWindow window;
    bool counted = false;  // has ever sent a request
    double applied = 0;    // share of all weights handed out last
  };

  Class& Find(ClassId id, TimePoint now);
  [[nodiscard]] bool Alarmed(TimePoint now) const;
  [[nodiscard]] BottleneckAllocation Allocate(const Tiers& tiers,
                                              const std::vector<TierClient>& clients) const;
  [[nodiscard]] TierClient ClientOf(Class* entry, const Tiers& tiers, TimePoint now) const;
  std::vector<Weight> Solve(const Tiers& tiers, TimePoint now);
  std::vector<Weight> IfMoved(std::vector<Weight> weights);

  Options options_;
  std::map<ClassId, Class> classes_;
  std::array<TierMeter, kTiersMax> meters_;
  BottleneckAllocation allocation_;
  std::vector<Division> divisions_;
  TimePoint observed_;
  TimePoint last_solve_;
  TimePoint next_solve_;
  uint64_t solved_ = 0;
};

}  // namespace weir::osd::qos
