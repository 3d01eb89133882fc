// What the Stonehenge experiments share: its disk, contracts, and who was served by when.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "osd/qos/admission/service_monitor.h"
#include "tools/sim/devices/hdd.h"
#include "tools/sim/engine/cluster.h"
#include "tools/sim/experiment.h"

namespace weir::sim {

inline constexpr double kGigabyte = 1e9;

// One row of the profile table (vc, cscan, cvc) for one request at a time, s = 1 / iops_max.
SchedulerConfig StonehengeConfig(Run& run, std::string_view profile, double iops_max,
                                 uint32_t depth = 1);

ClassSpec Contracted(ClassId id, const ServiceContract& contract);
ClassSpec PerSecond(ClassId id, double iops);

// Sizes of that many bytes anywhere in [start, start + span): reads.
std::function<void(Prng&, uint64_t, Io*)> RandomReadsOf(uint64_t bytes, uint64_t start,
                                                        uint64_t span);

// Watches the completions of one OSD from `from` on. `bound` > 0 of a class: its delay bound, whose
// clock starts when a request is among the first max_pending + 1 (A19).
class ServiceTally {
 public:
  struct Row {
    uint64_t done = 0;
    uint64_t late = 0;  // after their finish time
    uint64_t over = 0;  // beyond the bound
    std::shared_ptr<osd::qos::DelayClock> clock;
    Duration bound{0};
  };

  ServiceTally(Cluster* cluster, SimOsd* osd, Duration from);
  // `clock` is shared by the nodes of a striped class.
  void Bound(ClassId id, Duration bound, std::shared_ptr<osd::qos::DelayClock> clock);
  // A request of a class with a bound was done after that part of it.
  std::function<void(ClassId, double part)> on_delay;

  [[nodiscard]] const Row& row(ClassId id) { return rows_[id]; }
  [[nodiscard]] uint64_t done() const { return done_; }
  // Parts of what was done by classes with a deadline, or a bound.
  [[nodiscard]] double LatePart() const;
  [[nodiscard]] static double OverPart(const std::vector<ServiceTally*>& tallies, ClassId id);
  [[nodiscard]] double MeanServiceSeconds() const;

 private:
  void Done(const Job& job);

  Cluster* cluster_;
  TimePoint from_;
  std::map<ClassId, Row> rows_;
  uint64_t done_ = 0;
  uint64_t with_deadline_ = 0;
  uint64_t late_ = 0;
  Duration service_{0};
};

}  // namespace weir::sim
