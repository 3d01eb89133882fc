#include "tools/sim/devices/tiered.h"

#include "common/base/check.h"

namespace weir::sim {

TieredDevice::TieredDevice(EventQueue* events, const std::vector<DeviceFactory>& parts, Prng prng)
    : Device(events), clock_(events), parts_(parts.size()) {
  for (size_t tier = 0; tier < parts.size(); ++tier) {
    parts_[tier].device = parts[tier](events, Prng(prng.Next()));
    parts_[tier].device->SetDone([this, tier](Job* job) { Done(tier, job); });
  }
}

void TieredDevice::Submit(Job* job) {
  WEIR_CHECK(job->io.tier < parts_.size(), "a tier that the device does not have");
  Part& part = parts_[job->io.tier];
  if (part.in_flight++ == 0) part.busy_since = events().now();
  part.device->Submit(job);
}

void TieredDevice::Done(size_t tier, Job* job) {
  Part& part = parts_[tier];
  ++part.completed;
  if (--part.in_flight == 0) part.busy += events().now() - part.busy_since;
  FinishAt(events().now(), job->device_time, job);
}

Duration TieredDevice::busy(size_t tier) const {
  const Part& part = parts_[tier];
  return part.busy + (part.in_flight > 0 ? clock_->now() - part.busy_since : Duration(0));
}

DeviceFactory Tiered(std::vector<DeviceFactory> parts) {
  return [parts = std::move(parts)](EventQueue* events, Prng prng) {
    return std::make_unique<TieredDevice>(events, parts, prng);
  };
}

}  // namespace weir::sim
