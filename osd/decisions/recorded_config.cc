#include "osd/decisions/recorded_config.h"

#include <array>
#include <string>

namespace weir::osd {
namespace {

constexpr std::array<std::string_view, 3> kSpareWords{"system", "nobody", "owner"};  // SpareCharge

template <typename Kind>
Status Take(Result<Kind> parsed, Kind* to) {
  WEIR_ASSIGN_OR_RETURN(*to, std::move(parsed));
  return Status::Ok();
}

Result<SpareCharge> ParseSpare(std::string_view text) {
  for (size_t i = 0; i < kSpareWords.size(); ++i) {
    if (kSpareWords[i] == text) return static_cast<SpareCharge>(i);
  }
  return {ErrorCode::kInvalid, "unknown charge of spare time '" + std::string(text) + "'"};
}

void CvcToRecorded(const CvcConfig& cvc, wire::Recording::Config* to) {
  to->set_fixed_estimate_ns(cvc.fixed_estimate.count());
  to->set_estimate_part(cvc.estimate_part);
  to->set_first_estimate_ns(cvc.first_estimate.count());
  to->set_cvc_iops_max(cvc.iops_max);
  to->set_run_max(cvc.run_max);
  to->set_candidates(cvc.candidates);
  to->set_late_mode(cvc.late_mode);
  to->set_ahead_max_ns(cvc.ahead_max.count());
}

CvcConfig CvcFromRecorded(const wire::Recording::Config& message) {
  CvcConfig cvc;
  cvc.fixed_estimate = Duration(message.fixed_estimate_ns());
  cvc.estimate_part = message.estimate_part();
  cvc.first_estimate = Duration(message.first_estimate_ns());
  cvc.iops_max = message.cvc_iops_max();
  cvc.run_max = message.run_max();
  cvc.candidates = message.candidates();
  cvc.late_mode = message.late_mode();
  cvc.ahead_max = Duration(message.ahead_max_ns());
  return cvc;
}

Status ReservationFromRecorded(const wire::Recording::Class::Reservation& message,
                               ClassSpec* spec) {
  Reservation reservation;
  reservation.bytes_per_s = message.bytes_per_s();
  reservation.iops = message.iops();
  WEIR_RETURN_IF_ERROR(Take(ParseScope(message.scope()), &reservation.scope));
  WEIR_RETURN_IF_ERROR(Take(ParseAdmission(message.admission()), &reservation.admission));
  spec->reservation = reservation;
  if (message.has_ends_ns()) spec->reservation_ends = TimePoint{message.ends_ns()};
  return Status::Ok();
}

}  // namespace

wire::Recording::Config ToRecorded(const SchedulerConfig& config) {
  wire::Recording::Config to;
  to.set_profile(config.profile);
  to.set_guarantee(std::string(ToText(config.guarantee)));
  to.set_surplus(std::string(ToText(config.surplus)));
  to.set_sharing(std::string(ToText(config.sharing)));
  to.set_gate(std::string(ToText(config.gate)));
  to.set_dispatch(std::string(ToText(config.dispatch)));
  to.set_cost(std::string(ToText(config.cost)));
  to.set_maximizer(config.maximizer);
  to.set_depth(config.depth);
  to.set_token_rate(config.token_rate);
  if (config.best_effort_min) to.set_best_effort_min(*config.best_effort_min);
  to.set_iops_max(config.iops_max);
  to.set_anticipation(config.anticipation);
  to.set_processor_pressure(config.processor_pressure);
  to.set_quantum_ns(config.quantum.count());
  to.set_throughput_window_ns(config.throughput_window.count());
  to.set_spare(std::string(kSpareWords.at(static_cast<size_t>(config.spare))));
  to.set_reset_idle_ns(config.reset_idle.count());
  CvcToRecorded(config.cvc, &to);
  return to;
}

Result<SchedulerConfig> FromRecorded(const wire::Recording::Config& message) {
  SchedulerConfig config;
  config.profile = message.profile();
  config.guarantee = message.guarantee() == ToText(GuaranteeKind::kHtb) ? GuaranteeKind::kHtb
                                                                        : GuaranteeKind::kNone;
  WEIR_RETURN_IF_ERROR(Take(ParseSurplus(message.surplus()), &config.surplus));
  WEIR_RETURN_IF_ERROR(Take(ParseSharing(message.sharing()), &config.sharing));
  WEIR_RETURN_IF_ERROR(Take(ParseGate(message.gate()), &config.gate));
  WEIR_RETURN_IF_ERROR(Take(ParseDispatch(message.dispatch()), &config.dispatch));
  WEIR_RETURN_IF_ERROR(Take(ParseCost(message.cost()), &config.cost));
  config.maximizer = message.maximizer();
  config.depth = message.depth();
  config.token_rate = message.token_rate();
  if (message.has_best_effort_min()) config.best_effort_min = message.best_effort_min();
  config.iops_max = message.iops_max();
  config.anticipation = message.anticipation();
  config.processor_pressure = message.processor_pressure();
  config.quantum = Duration(message.quantum_ns());
  config.throughput_window = Duration(message.throughput_window_ns());
  WEIR_RETURN_IF_ERROR(Take(ParseSpare(message.spare()), &config.spare));
  config.reset_idle = Duration(message.reset_idle_ns());
  config.cvc = CvcFromRecorded(message);
  return config;
}

wire::Recording::Class ToRecorded(const ClassSpec& spec) {
  wire::Recording::Class to;
  to.set_id(spec.id.value);
  to.set_weight(spec.weight);
  to.set_min_weight(spec.min_weight);
  if (spec.limit_bytes_per_s) to.set_limit_bytes_per_s(*spec.limit_bytes_per_s);
  if (spec.reservation) {
    auto* reservation = to.mutable_reservation();
    reservation->set_bytes_per_s(spec.reservation->bytes_per_s);
    reservation->set_iops(spec.reservation->iops);
    reservation->set_scope(std::string(ToText(spec.reservation->scope)));
    reservation->set_admission(std::string(ToText(spec.reservation->admission)));
    if (spec.reservation_ends) reservation->set_ends_ns(spec.reservation_ends->ns);
  }
  to.set_disk_type(std::string(ToText(spec.disk.type)));
  to.set_peak(spec.disk.peak);
  to.set_disk_latency_ns(spec.disk.latency.count());
  to.set_throughput_bytes_per_s(spec.disk.throughput_bytes_per_s);
  to.set_tolerance(spec.disk.tolerance);
  to.set_service_iops(spec.service.iops);
  to.set_bound_ns(spec.service.bound.count());
  to.set_probability(spec.service.probability);
  to.set_max_pending(spec.service.max_pending);
  to.set_granted_iops(spec.service.granted_iops);
  for (const TransactionSpec& transaction : spec.transactions) {
    auto* row = to.add_transactions();
    row->set_id(transaction.id);
    row->set_bytes_per_s(transaction.bytes_per_s);
  }
  to.set_admission(std::string(ToText(spec.admission)));
  return to;
}

Result<ClassSpec> FromRecorded(const wire::Recording::Class& message) {
  ClassSpec spec;
  spec.id = ClassId(message.id());
  spec.weight = message.weight();
  spec.min_weight = message.min_weight();
  if (message.has_limit_bytes_per_s()) spec.limit_bytes_per_s = message.limit_bytes_per_s();
  if (message.has_reservation()) {
    WEIR_RETURN_IF_ERROR(ReservationFromRecorded(message.reservation(), &spec));
  }
  WEIR_RETURN_IF_ERROR(Take(ParseClassType(message.disk_type()), &spec.disk.type));
  spec.disk.peak = message.peak();
  spec.disk.latency = Duration(message.disk_latency_ns());
  spec.disk.throughput_bytes_per_s = message.throughput_bytes_per_s();
  spec.disk.tolerance = message.tolerance();
  spec.service.iops = message.service_iops();
  spec.service.bound = Duration(message.bound_ns());
  spec.service.probability = message.probability();
  spec.service.max_pending = message.max_pending();
  spec.service.granted_iops = message.granted_iops();
  for (const auto& row : message.transactions()) {
    spec.transactions.push_back({.id = row.id(), .bytes_per_s = row.bytes_per_s()});
  }
  WEIR_RETURN_IF_ERROR(Take(ParseAdmission(message.admission()), &spec.admission));
  return spec;
}

}  // namespace weir::osd
