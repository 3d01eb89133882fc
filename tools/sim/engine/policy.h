// Policy: what decides the order at one OSD. The product's Scheduler, or a baseline of the papers
// that only the simulator needs; the calls are the Scheduler's (osd/qos/scheduler.h).
#pragma once

#include <functional>
#include <memory>

#include "osd/qos/scheduler.h"

namespace weir::sim {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void SetClass(const ClassSpec& spec, TimePoint now) = 0;
  virtual void Enqueue(osd::qos::Request* request, TimePoint now) = 0;
  virtual osd::qos::PullResult Pull(TimePoint now) = 0;
  virtual void Completed(osd::qos::Request* request, TimePoint now) = 0;
  virtual void Tick(TimePoint /*now*/) {}
  [[nodiscard]] virtual TimePoint NextTick() const { return TimePoint::Max(); }
  [[nodiscard]] virtual uint64_t queued() const = 0;
  [[nodiscard]] virtual uint64_t in_flight() const = 0;
  // The product's scheduler, or null for a baseline.
  [[nodiscard]] virtual osd::qos::Scheduler* scheduler() { return nullptr; }
};

using PolicyFactory = std::function<std::unique_ptr<Policy>(TimePoint now)>;

// The product's scheduler. The recorder, if there is one, hears what is done to it.
PolicyFactory ProductPolicy(const SchedulerConfig& config,
                            osd::qos::DecisionRecorder* recorder = nullptr);

}  // namespace weir::sim
