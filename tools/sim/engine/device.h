// Device: a modelled disk under one OSD. Takes what the scheduler pulls and says when it is done;
// how many it is given at a time is the scheduler's depth.
//
// A model is a function of the requests it saw and of its own seeded chance, nothing else.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/prng.h"
#include "tools/sim/engine/event_queue.h"
#include "tools/sim/engine/job.h"

namespace weir::sim {

class Device {
 public:
  using Done = std::function<void(Job*)>;

  explicit Device(EventQueue* events) : events_(events) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void SetDone(Done done) { done_ = std::move(done); }
  virtual void Submit(Job* job) = 0;
  // For models that have a rate: changes it for what is submitted from now on.
  virtual void SetRate(double /*bytes_per_s*/) {}

 protected:
  EventQueue& events() { return *events_; }
  // Reports the job as done at `end`, after the device worked `worked` on it.
  void FinishAt(TimePoint end, Duration worked, Job* job) {
    job->device_time = worked;
    events_->At(end, [this, job] { Ended(job); });
  }
  // The model's own bookkeeping at the end of a job, before the scheduler hears of it.
  virtual void OnEnd(Job* /*job*/) {}

 private:
  void Ended(Job* job) {
    OnEnd(job);
    done_(job);
  }

  EventQueue* events_;
  Done done_;
};

// Makes a device; the Prng is its own.
using DeviceFactory = std::function<std::unique_ptr<Device>(EventQueue*, Prng)>;

}  // namespace weir::sim
