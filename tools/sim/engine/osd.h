// SimOsd: one OSD of the simulated cluster, a policy in front of a device. Pulls whenever something
// changed, as the daemon's dispatcher does, and wakes the policy when it asked for it.
#pragma once

#include <functional>
#include <memory>

#include "tools/sim/engine/device.h"
#include "tools/sim/engine/policy.h"

namespace weir::sim {

class SimOsd {
 public:
  using Done = std::function<void(Job*)>;
  using Observer = std::function<void(const Job&)>;

  SimOsd(EventQueue* events, std::unique_ptr<Policy> policy, std::unique_ptr<Device> device,
         Done done);
  SimOsd(const SimOsd&) = delete;
  SimOsd& operator=(const SimOsd&) = delete;

  void Send(Job* job);
  // To be called after the policy was changed from outside.
  void Pump();

  Policy& policy() { return *policy_; }
  // Requires: the policy is the product's scheduler.
  osd::qos::Scheduler& scheduler();
  Device& device() { return *device_; }
  void SetDeviceRate(double bytes_per_s) { device_->SetRate(bytes_per_s); }

  // What tests and oracles watch; each may be empty.
  Observer on_arrival, on_dispatch, on_completion;

  // Whether the device ever stood still while somebody waited, and for how long.
  [[nodiscard]] bool saw_idle_while_queued() const { return saw_idle_while_queued_; }
  [[nodiscard]] Duration idle_while_queued() const { return idle_time_; }
  // The same with any free slot of a device of this depth.
  void WatchDepth(uint64_t depth) { watched_depth_ = depth; }
  [[nodiscard]] Duration free_slot_while_queued() const { return free_slot_time_; }
  [[nodiscard]] Duration busy_time() const;  // with at least one request on the device

 private:
  void Completed(Job* job);
  void NoteState();
  void ArmWake(TimePoint when);
  void ArmTick();

  EventQueue* events_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Device> device_;
  Done done_;
  bool armed_ = false;
  TimePoint wake_at_;
  TimePoint noted_at_;
  bool idle_while_queued_ = false;
  bool busy_ = false;
  bool saw_idle_while_queued_ = false;
  Duration idle_time_{0};
  uint64_t watched_depth_ = 0;
  bool free_slot_while_queued_ = false;
  Duration free_slot_time_{0};
  Duration busy_time_{0};
};

}  // namespace weir::sim
