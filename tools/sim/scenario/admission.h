// Admission of a scenario's classes, at the moment at which they ask: by their worst case, or by
// what the OSDs' own meters measured (common/qos/contract_admission.h), on every OSD or on none.
// Promises are those of one OSD each; nothing is divided among several.
#pragma once

#include <vector>

#include "common/qos/contract_admission.h"
#include "tools/sim/scenario/scenario.h"

namespace weir::sim {

class AdmissionDesk {
 public:
  // The cluster outlives it.
  AdmissionDesk(Cluster* cluster, const SchedulerConfig& config)
      : cluster_(cluster), config_(config) {}

  // It is there whatever there is room for.
  void Take(const ClassSpec& spec) { admitted_.push_back({spec, AdmissionKind::kAdditive}); }
  // Taken if it is admitted.
  ScenarioResult::AdmissionResult Ask(const ClassSpec& spec, AdmissionKind kind);

 private:
  struct Admitted {
    ClassSpec spec;
    AdmissionKind kind;
  };
  [[nodiscard]] ServiceContract ContractOf(const ClassSpec& spec) const;
  [[nodiscard]] ContractDecision Decide(const ServiceContract& newcomer, AdmissionKind kind,
                                        const osd::qos::ServiceReport& report) const;

  Cluster* cluster_;
  SchedulerConfig config_;
  std::vector<Admitted> admitted_;
};

}  // namespace weir::sim
