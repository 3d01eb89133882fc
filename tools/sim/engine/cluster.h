// Cluster: OSDs, coordinators and workloads in virtual time. One thread, no clock, chance only from
// the seed: the same calls give the same numbers.
//
//   Cluster cluster(seed);
//   cluster.AddOsd(config, Flat(60 * kMiB));       // the product's scheduler, a 60 MiB/s device
//   cluster.SetClass(spec);
//   Load* load = cluster.Start({.class_id = spec.id, .outstanding = 8});
//   cluster.RunTo(10s);
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "client/qos/delay_tracker.h"
#include "client/qos/limit_window.h"
#include "client/qos/osd_turns.h"
#include "tools/sim/engine/limit_division.h"
#include "tools/sim/engine/load.h"
#include "tools/sim/engine/osd.h"

namespace weir::sim {

// What some baselines add at the coordinators.
class CoordinatorHook {
 public:
  virtual ~CoordinatorHook() = default;
  virtual void OnSend(Job* job) = 0;
  virtual void OnDone(const Job& job) = 0;
};

class Cluster {
 public:
  explicit Cluster(uint64_t seed);
  // `osds` of the same kind, each with a flat device of that many bytes per second.
  Cluster(size_t osds, const SchedulerConfig& config, uint64_t device_rate);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // The unit of delays follows the cost of the config that was added last (one per cluster).
  SimOsd& AddOsd(const SchedulerConfig& config, const DeviceFactory& device,
                 osd::qos::DecisionRecorder* recorder = nullptr);
  SimOsd& AddOsd(const PolicyFactory& policy, const DeviceFactory& device);
  void SetHook(std::unique_ptr<CoordinatorHook> hook) { hook_ = std::move(hook); }
  // False: coordinators say nothing about other OSDs (the planted fault of mutation tests).
  void SendDelays(bool on) { send_delays_ = on; }
  // True: a coordinator holds back a class that has a limit over all OSDs, as a mount does
  // (limit_window.h). Before the first SetClass.
  void HoldLimits(bool on) { hold_limits_ = on; }
  // And each holds it to its part of the limit, as mounts and MDS divide it; OSDs have the ceiling
  // that they have in the product. Before the first SetClass.
  void DivideLimits();

  // On every OSD.
  void SetClass(const ClassSpec& spec);
  void Configure(const SchedulerConfig& config);

  Load* Start(LoadOptions options);
  void RunTo(Duration end) { events_.RunTo(TimePoint{0} + end); }

  [[nodiscard]] size_t osds() const { return osds_.size(); }
  SimOsd& osd(size_t index = 0) { return *osds_[index]; }
  EventQueue& events() { return events_; }
  [[nodiscard]] Duration now() const { return events_.now() - TimePoint{0}; }
  client::DelayTracker& tracker(size_t coordinator);
  // Events at moments of the run, for experiments that change something on the way.
  void At(Duration when, EventQueue::Action action) {
    events_.At(TimePoint{0} + when, std::move(action));
  }

 private:
  friend class Load;
  struct Limit {
    client::LimitWindow window;
    size_t coordinator = 0;
    std::deque<Job*> answers;  // that are held back
    struct Place {
      std::deque<Job*> held;
      uint64_t flying_bytes = 0;
      uint64_t last_turn = 0;
    };
    std::map<size_t, Place> places;  // by OSD
    uint64_t held_bytes = 0;         // of all places
    uint64_t sent = 0;               // requests
    bool holds = false;
    TimePoint holds_since;
    Duration held_for{0};  // before
    TimePoint wakes_at;    // in the past: nothing will
  };
  void Send(Job* job);
  void SendNow(Job* job);
  Limit* LimitOf(const Job& job);
  // The place whose turn it is; null: nothing is held.
  static Limit::Place* NextPlace(Limit* limit);
  // And gives the answers that it admits.
  void SendAdmitted(Limit* limit);
  void WakeFor(Limit* limit);
  void NoteHolding(Limit* limit);
  [[nodiscard]] uint64_t RateOf(size_t coordinator, ClassId id, uint64_t limit) const;
  std::map<ClassId, LimitShare::Counts> CountsOf(size_t coordinator);
  void ObeyParts(size_t coordinator);
  void Done(Job* job);
  [[nodiscard]] int64_t CostOf(const Job& job) const;

  uint64_t seed_;
  EventQueue events_;
  std::vector<client::DelayTracker> trackers_;
  std::unique_ptr<CoordinatorHook> hook_;
  std::vector<std::unique_ptr<SimOsd>> osds_;
  std::vector<std::unique_ptr<Load>> loads_;
  CostKind cost_ = CostKind::kBytes;
  bool send_delays_ = true;
  bool hold_limits_ = false;
  std::unique_ptr<LimitDivision> division_;  // null: not divided
  std::map<ClassId, uint64_t> limits_;
  std::map<std::pair<size_t, ClassId>, Limit> windows_;  // by coordinator
};

// A class without promises. The default minimum weight is a tenth of the weight.
ClassSpec Spec(ClassId id, double weight = 1);
ClassSpec Reserved(ClassId id, uint64_t rate, double weight = 1,
                   ReservationScope scope = ReservationScope::kOsd);

}  // namespace weir::sim
