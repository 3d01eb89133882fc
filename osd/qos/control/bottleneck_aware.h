// BottleneckAware: the control loop of BAA (Wang and Varman, FAST'14, Algorithm 1; algorithms
// §6.6). It watches which tier each class's requests go to, solves for the division that does most
// without making anybody envious, and hands out weights for a proportional scheduler: one SFQ(D) in
// front of all tiers, or TOTAL-DSFQ over OSDs of different tiers (A35), cost `requests`.
//
//   Count(class, tier)  every request          Observe(tiers)  once a second      Tick  when due
//
// It solves every period, and between periods when an alarm says that the mix has changed: one tier
// idles (busy below 80 %) while another is full (above 98 %), at most once a second. (Freedom of
// envy may not allow more; then the alarm goes on, which is cheap.) New weights are handed out only
// if a class came or some share moved by more than 2 % of itself (hysteresis, A34).
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
    double hysteresis = 0.02;
  };
  struct Weight {
    ClassId id;
    double weight;  // all of them sum to 1
  };

  BottleneckAware(const Options& options, TimePoint now);

  // The operator's word; unknown classes begin with weight 1 when they send something.
  void SetWeight(ClassId id, double weight, TimePoint now);
  void Remove(ClassId id) { classes_.erase(id); }

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
  [[nodiscard]] uint64_t solved() const { return solved_; }

 private:
  static constexpr Duration kAlarmPause = std::chrono::seconds(1);
  static constexpr double kIdle = 0.80;

  struct Class {
    double weight = 1;
    HitWindow window;
    bool counted = false;  // has ever sent a request
    double applied = 0;    // share of all weights handed out last
  };

  Class& Find(ClassId id, TimePoint now);
  [[nodiscard]] bool Alarmed(TimePoint now) const;
  // The capacities to solve with. False if one is neither configured nor measured yet.
  bool CurrentTiers(Tiers* tiers) const;
  [[nodiscard]] TierClient ClientOf(Class* entry, const Tiers& tiers, TimePoint now) const;
  std::vector<Weight> Solve(const Tiers& tiers, TimePoint now);
  std::vector<Weight> IfMoved(std::vector<Weight> weights);

  Options options_;
  std::map<ClassId, Class> classes_;
  std::array<TierMeter, kTiersMax> meters_;
  BottleneckAllocation allocation_;
  TimePoint observed_;
  TimePoint last_solve_;
  TimePoint next_solve_;
  uint64_t solved_ = 0;
};

}  // namespace weir::osd::qos
