// Workload: something that a scheduler goes through while it is recorded (osd/decisions), for
// tests/decisions. All chance comes from fixed seeds and time is virtual, so that the same
// scheduler gives the same recordings.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "osd/decisions/event.h"
#include "tools/sim/engine/cluster.h"

namespace weir::sim {

inline constexpr size_t kKeptEvents = 9000;  // of a scheduler, unless a workload says otherwise

// The schedulers that one run of a workload records.
class Session {
 public:
  // Hears one scheduler and keeps the first events. `part` tells several of a workload apart.
  osd::qos::DecisionRecorder* Keep(const std::string& part = "", size_t events_max = kKeptEvents);
  // An OSD of the cluster that is recorded.
  SimOsd& AddOsd(Cluster* cluster, const SchedulerConfig& config, const DeviceFactory& device,
                 const std::string& part = "", size_t events_max = kKeptEvents);
  // Runs until then, or until nobody hears any more.
  void RunTo(Cluster* cluster, Duration end) const;
  [[nodiscard]] bool full() const;

  // By part.
  [[nodiscard]] const auto& kept() const { return kept_; }

 private:
  std::vector<std::pair<std::string, std::unique_ptr<osd::EventKeeper>>> kept_;
};

struct Workload {
  std::string name;    // of the file, with "-<part>" behind where it has parts
  std::string covers;  // one line for the table
  std::function<void(Session& session)> run;
};

void AddProfiles(std::vector<Workload>* all);
void AddBoxes(std::vector<Workload>* all);
void AddPromises(std::vector<Workload>* all);
void AddSharing(std::vector<Workload>* all);
void AddContracts(std::vector<Workload>* all);
void AddDevices(std::vector<Workload>* all);
void AddOperators(std::vector<Workload>* all);
// All of them.
std::vector<Workload> AllWorkloads();

}  // namespace weir::sim
