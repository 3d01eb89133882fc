// What a Dispatcher tells about itself.
#include "osd/io/dispatcher.h"
#include "osd/qos/admission/service_monitor.h"

namespace weir::osd {
namespace {

constexpr uint64_t kEnoughAlone = 100;

LatencyQuantiles QuantilesOf(const LatencyHistogram& latency) {
  return {.p50_us = latency.Quantile(0.5),
          .p90_us = latency.Quantile(0.9),
          .p99_us = latency.Quantile(0.99),
          .p999_us = latency.Quantile(0.999)};
}

}  // namespace

void Dispatcher::NoteFull(TimePoint now) {
  const bool waits = config_.gate == GateKind::kStrict && scheduler_.queued() > 0;
  const bool full = waits || (scheduler_.in_flight() > 0 && !scheduler_.Advise(now).has_slot);
  if (full == full_) return;
  if (full_) activity_.full += now - full_since_;
  full_ = full;
  full_since_ = now;
}

DispatcherStats Dispatcher::Stats(bool reset, bool flows) {
  AccountAnswered();
  const TimePoint now = Now();
  DispatcherStats stats;
  const qos::SchedulerState state = scheduler_.State(now);
  stats.token_rate = state.token_rate;
  stats.base_token_rate = config_.token_rate;
  stats.device_bytes_per_s = device_.BytesPerSecond(now);
  stats.bypassed_bytes = bypassed_bytes_;
  stats.pace = state.bulk_cap;
  stats.bulk_let_go = governor_.Rests(now);
  if (alone_.count() >= kEnoughAlone) {
    stats.alone_p99 = std::chrono::microseconds(alone_.Quantile(0.99));
  }
  stats.disk = state.disk;
  stats.window = now - counted_since_;
  for (qos::ClassCounters& total : scheduler_.Counters(now)) {
    const qos::ClassCounters& outside = outside_[total.id];
    total.served_ops += outside.served_ops;
    total.served_bytes += outside.served_bytes;
    DispatcherClassStats one{.counters = total};
    one.outside_bytes = outside.served_bytes - outside_baseline_[total.id];
    const qos::ClassCounters& base = baseline_[total.id];
    one.counters.served_ops -= base.served_ops;
    one.counters.served_bytes -= base.served_bytes;
    one.counters.guaranteed_bytes -= base.guaranteed_bytes;
    one.counters.surplus_bytes -= base.surplus_bytes;
    one.counters.arrived_bytes -= base.arrived_bytes;
    one.counters.violation_seconds -= base.violation_seconds;
    one.counters.deadline_misses -= base.deadline_misses;
    const LatencyHistogram& latency = latency_[total.id];
    one.p50_us = latency.Quantile(0.5);
    one.p90_us = latency.Quantile(0.9);
    one.p99_us = latency.Quantile(0.99);
    one.p999_us = latency.Quantile(0.999);
    if (const auto found = recent_.find(total.id); found != recent_.end()) {
      one.recent = QuantilesOf(found->second.At(now));
    }
    one.bound = setpoint_.Of(total.id, now);
    if (const auto found = flows_.find(total.id); flows && found != flows_.end()) {
      one.flows = FlowMeter::ReportOf(found->second.LookAt(now), kFlowsTold);
    }
    one.counters.times.ops = total.served_ops;
    one.counters.times.bytes = total.served_bytes;
    one.latencies = latency.FilledBuckets();
    one.latency_sum_us = latency.sum();
    if (const auto spec = classes_.find(total.id); spec != classes_.end()) {
      one.name = spec->second.name;
    }
    stats.classes.push_back(std::move(one));
    if (reset) baseline_[total.id] = total;
    if (reset) outside_baseline_[total.id] = outside.served_bytes;
  }
  if (reset) {
    latency_.clear();
    counted_since_ = now;
  }
  return stats;
}

std::map<ClassId, OsdClassTimes> Dispatcher::Times() {
  AccountAnswered();
  std::map<ClassId, OsdClassTimes> all;
  for (qos::ClassCounters& total : scheduler_.Counters(Now())) {
    const qos::ClassCounters& outside = outside_[total.id];
    total.times.ops = total.served_ops + outside.served_ops;
    total.times.bytes = total.served_bytes + outside.served_bytes;
    if (total.times != OsdClassTimes()) all[total.id] = total.times;
  }
  return all;
}

DispatcherActivity Dispatcher::Activity() {
  AccountAnswered();
  DispatcherActivity activity = activity_;
  if (full_) activity.full += Now() - full_since_;
  return activity;
}

qos::ServiceReport Dispatcher::Measures() {
  AccountAnswered();
  return scheduler_.Measures();
}

}  // namespace weir::osd
