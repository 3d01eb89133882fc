#include "tools/sim/recordings/workload.h"

#include <algorithm>

namespace weir::sim {

osd::qos::DecisionRecorder* Session::Keep(const std::string& part, size_t events_max) {
  kept_.emplace_back(part, std::make_unique<osd::EventKeeper>(events_max));
  return kept_.back().second.get();
}

SimOsd& Session::AddOsd(Cluster* cluster, const SchedulerConfig& config,
                        const DeviceFactory& device, const std::string& part, size_t events_max) {
  return cluster->AddOsd(config, device, Keep(part, events_max));
}

void Session::RunTo(Cluster* cluster, Duration end) const {
  constexpr Duration kLook = std::chrono::milliseconds(100);
  while (cluster->now() < end && !full()) cluster->RunTo(std::min(end, cluster->now() + kLook));
}

bool Session::full() const {
  return std::all_of(kept_.begin(), kept_.end(),
                     [](const auto& one) { return one.second->full(); });
}

std::vector<Workload> AllWorkloads() {
  std::vector<Workload> all;
  AddProfiles(&all);
  AddBoxes(&all);
  AddPromises(&all);
  AddSharing(&all);
  AddContracts(&all);
  AddDevices(&all);
  AddOperators(&all);
  return all;
}

}  // namespace weir::sim
