#include "tools/sim/scenario/admission.h"

#include <algorithm>
#include <cmath>

namespace weir::sim {
namespace {

double AtPercent(const std::vector<double>& quantiles, double e, double unknown) {
  if (quantiles.empty()) return unknown;
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(e * 100 - 1e-9)));
  return quantiles[std::min(rank, quantiles.size()) - 1];
}

ServiceMeasures View(const osd::qos::ServiceReport& report) {
  return {.service_part = [&report](double e) { return AtPercent(report.service_parts, e, 1); },
          .io_rate = [&report](double x) { return AtPercent(report.io_rates, x, 0); },
          .stable = report.stable};
}

}  // namespace

// In requests per second: a promise in bytes is worth as many as IOPSmax has of G0.
ServiceContract AdmissionDesk::ContractOf(const ClassSpec& spec) const {
  ServiceContract contract = spec.service;
  if (!spec.reservation) return contract;
  contract.iops = static_cast<double>(spec.reservation->iops);
  const auto bytes = static_cast<double>(spec.reservation->bytes_per_s);
  if (bytes > 0) contract.iops = std::max(contract.iops, bytes / config_.RequestUnit());
  return contract;
}

ContractDecision AdmissionDesk::Decide(const ServiceContract& newcomer, AdmissionKind kind,
                                       const osd::qos::ServiceReport& report) const {
  const double iops_max = config_.EffectiveIopsMax();
  const double best_effort =
      config_.token_rate == 0
          ? 0
          : static_cast<double>(config_.EffectiveBestEffortMin()) / config_.RequestUnit();
  std::vector<AdmittedClass> by_worst_case;
  std::vector<AdmittedClass> by_measure;
  AdmissionOptions options;
  for (const auto& [spec, how] : admitted_) {
    const bool seen =
        std::find(report.measured.begin(), report.measured.end(), spec.id) != report.measured.end();
    const bool bound = spec.service.bound > Duration(0);
    if (how == AdmissionKind::kAdditive || kind == AdmissionKind::kAdditive) {
      by_worst_case.push_back({ContractOf(spec), false});
      continue;
    }
    if (bound && !seen) ++options.unmeasured;
    by_measure.push_back({ContractOf(spec), seen && !bound});
  }
  options.taken = best_effort;
  if (kind == AdmissionKind::kAdditive) {
    return AdmitMeasured(by_worst_case, newcomer, iops_max, {}, options);  // by nothing measured
  }
  const ContractDecision others = AdmitContract(by_worst_case, {}, iops_max);
  for (double rate : others.rates) options.taken += std::isfinite(rate) ? rate : iops_max;
  return AdmitMeasured(by_measure, newcomer, iops_max, View(report), options);
}

ScenarioResult::AdmissionResult AdmissionDesk::Ask(const ClassSpec& spec, AdmissionKind kind) {
  bool stable = true;
  const ContractDecision decision = AdmitOnAll(cluster_->osds(), [&](size_t osd) {
    const osd::qos::ServiceReport report = cluster_->osd(osd).scheduler().Measures();
    stable = stable && report.stable;
    return Decide(ContractOf(spec), kind, report);
  });
  if (decision.admitted) admitted_.push_back({spec, kind});
  return {spec.name,
          decision.admitted,
          kind == AdmissionKind::kMeasured && stable,
          decision.rates.empty() ? 0 : decision.rates.back(),
          decision.reserved,
          decision.spare,
          decision.why};
}

}  // namespace weir::sim
