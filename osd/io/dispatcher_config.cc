// What a running Dispatcher obeys.
#include "osd/io/dispatcher.h"

namespace weir::osd {
namespace {

// reservation_ends is left out: it is `ends` on another clock, and wobbles with the translation.
bool SameSpec(const ClassSpec& a, const ClassSpec& b) {
  return a.id == b.id && a.name == b.name && a.weight == b.weight && a.min_weight == b.min_weight &&
         a.limit_bytes_per_s == b.limit_bytes_per_s && a.reservation == b.reservation &&
         a.transactions == b.transactions && a.disk == b.disk && a.service == b.service &&
         a.admission == b.admission;
}

bool SameConfig(const SchedulerConfig& a, const SchedulerConfig& b) {
  if (a.reset_idle != b.reset_idle) return false;
  return a.profile == b.profile && a.guarantee == b.guarantee && a.surplus == b.surplus &&
         a.sharing == b.sharing && a.gate == b.gate && a.dispatch == b.dispatch &&
         a.cost == b.cost && a.maximizer == b.maximizer && a.depth == b.depth &&
         a.token_rate == b.token_rate && a.best_effort_min == b.best_effort_min &&
         a.iops_max == b.iops_max && a.anticipation == b.anticipation &&
         a.processor_pressure == b.processor_pressure && a.quantum == b.quantum &&
         a.throughput_window == b.throughput_window && a.spare == b.spare && a.cvc == b.cvc;
}

}  // namespace

void Dispatcher::Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes) {
  AccountAnswered();
  if (draining_) return;
  const TimePoint now = Now();
  if (!SameConfig(config, config_)) {
    scheduler_.Configure(config, now);
    config_ = config;
    setpoint_.SetLeast(config.processor_pressure / 100.0);
    governor_.Choose(setpoint_.pressure());
    SetBulkCap(now);
  }
  std::map<ClassId, ClassSpec> wanted;
  for (const ClassSpec& spec : classes) wanted[spec.id] = spec;
  for (auto it = classes_.begin(); it != classes_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    if (it->first != kBestEffort) scheduler_.RemoveClass(it->first, now);
    latency_.erase(it->first);
    recent_.erase(it->first);
    setpoint_.Forget(it->first);
    baseline_.erase(it->first);
    outside_.erase(it->first);
    outside_baseline_.erase(it->first);
    it = classes_.erase(it);
  }
  for (const auto& [id, spec] : wanted) {
    const auto have = classes_.find(id);
    if (have != classes_.end() && SameSpec(have->second, spec)) continue;
    scheduler_.SetClass(spec, now);
    classes_[id] = spec;
    if (spec.service.bound == Duration(0)) setpoint_.Forget(id);
  }
  Pump();
}

void Dispatcher::SetBooked(uint64_t bytes_per_s) {
  scheduler_.SetBooked(bytes_per_s);
}

void Dispatcher::BeginDrain() {
  AccountAnswered();
  draining_ = true;
  const TimePoint now = Now();
  for (const auto& [id, spec] : classes_) {
    ClassSpec open = spec;
    open.limit_bytes_per_s.reset();
    open.service = {};
    open.disk = {};
    open.reservation.reset();
    open.reservation_ends.reset();
    scheduler_.SetClass(open, now);
  }
  config_.guarantee = GuaranteeKind::kNone;
  config_.gate = GateKind::kConserving;
  scheduler_.Configure(config_, now);
  processors_ = nullptr;
  setpoint_.SetLeast(1);
  governor_.Choose(1);
  SetBulkCap(now);
  Pump();
}

}  // namespace weir::osd
