// Tiered: one device made of several (an HD and an SSD); a request goes to the part that its
// io.tier names. The parts work at the same time.
#pragma once

#include <vector>

#include "tools/sim/engine/device.h"

namespace weir::sim {

class TieredDevice final : public Device {
 public:
  TieredDevice(EventQueue* events, const std::vector<DeviceFactory>& parts, Prng prng);

  void Submit(Job* job) override;

  [[nodiscard]] size_t tiers() const { return parts_.size(); }
  // Since the beginning.
  [[nodiscard]] uint64_t completed(size_t tier) const { return parts_[tier].completed; }
  [[nodiscard]] Duration busy(size_t tier) const;  // with at least one request

 private:
  struct Part {
    std::unique_ptr<Device> device;
    uint64_t completed = 0;
    uint64_t in_flight = 0;
    TimePoint busy_since;
    Duration busy{0};
  };
  void Done(size_t tier, Job* job);

  EventQueue* clock_;
  std::vector<Part> parts_;
};

DeviceFactory Tiered(std::vector<DeviceFactory> parts);

}  // namespace weir::sim
