#include "osd/service/tier_stats.h"

#include <algorithm>
#include <map>

#include "common/placement/flow_totals.h"
#include "common/placement/times_wire.h"
#include "common/wire/osd.pb.h"
#include "osd/io/tier_set.h"
#include "osd/service/object_service.h"

namespace weir::osd {
namespace {

void Add(const wire::LatencyStats& one, wire::LatencyStats* longest) {
  longest->set_p50_us(std::max(longest->p50_us(), one.p50_us()));
  longest->set_p90_us(std::max(longest->p90_us(), one.p90_us()));
  longest->set_p99_us(std::max(longest->p99_us(), one.p99_us()));
  longest->set_p999_us(std::max(longest->p999_us(), one.p999_us()));
}

// Buckets of the same histogram, each sorted by its end.
void AddBuckets(const wire::ClassStats& one, wire::ClassStats* sum) {
  std::map<uint64_t, uint64_t> counts;
  for (const wire::ClassStats* stats : {&one, static_cast<const wire::ClassStats*>(sum)}) {
    for (int i = 0; i < stats->latency_ends_us_size(); ++i) {
      counts[stats->latency_ends_us(i)] += stats->latency_counts(i);
    }
  }
  sum->clear_latency_ends_us();
  sum->clear_latency_counts();
  for (const auto& [end, count] : counts) {
    sum->add_latency_ends_us(end);
    sum->add_latency_counts(count);
  }
  sum->set_latency_sum_us(sum->latency_sum_us() + one.latency_sum_us());
}

void AddTimes(const wire::ClassStats& one, wire::ClassStats* sum) {
  OsdClassTimes times = weir::FromWire(sum->times());
  times += weir::FromWire(one.times());
  ToWire(ClassId(one.class_id()), times, sum->mutable_times());
}

void Add(const wire::ClassStats& one, wire::ClassStats* sum) {
  sum->set_served_bytes(sum->served_bytes() + one.served_bytes());
  sum->set_served_ops(sum->served_ops() + one.served_ops());
  sum->set_queued_ops(sum->queued_ops() + one.queued_ops());
  sum->set_guaranteed_bytes(sum->guaranteed_bytes() + one.guaranteed_bytes());
  sum->set_surplus_bytes(sum->surplus_bytes() + one.surplus_bytes());
  sum->set_arrived_bytes(sum->arrived_bytes() + one.arrived_bytes());
  sum->set_deadline_misses(sum->deadline_misses() + one.deadline_misses());
  sum->set_violation_seconds(sum->violation_seconds() + one.violation_seconds());
  sum->set_outside_bytes(sum->outside_bytes() + one.outside_bytes());
  Add(one.latency(), sum->mutable_latency());
  Add(one.recent_latency(), sum->mutable_recent_latency());
  AddBuckets(one, sum);
  AddTimes(one, sum);
  if (sum->name().empty()) sum->set_name(one.name());
  if (one.has_flows()) AddFlows(one.flows(), sum->mutable_flows());
}

wire::ClassStats* RowOf(uint32_t id, wire::OsdStatsReply* reply) {
  for (wire::ClassStats& row : *reply->mutable_classes()) {
    if (row.class_id() == id) return &row;
  }
  wire::ClassStats* row = reply->add_classes();
  row->set_class_id(id);
  return row;
}

void AddAllocation(TierSet& tiers, size_t count, wire::OsdStatsReply* reply) {
  const std::map<ClassId, double> weights = tiers.Weights();
  for (const qos::BottleneckAware::Division& division : tiers.Divisions()) {
    wire::ClassAllocation* row = reply->add_allocation();
    row->set_class_id(division.id.value);
    for (size_t k = 0; k < count; ++k) row->add_hits(division.active ? division.use[k] : 0);
    if (division.active) {
      row->set_bottleneck(reply->tiers(static_cast<int>(division.bottleneck)).name());
    }
    row->set_fair_rate(division.fair_rate);
    row->set_rate(division.rate);
    const auto weight = weights.find(division.id);
    if (weight != weights.end()) row->set_weight(weight->second);
  }
}

}  // namespace

void AddTierStats(TierSet& tiers, const DispatcherStats& first,
                  const wire::OsdStatsRequest& request, wire::OsdStatsReply* reply) {
  const auto reports = tiers.Reports(first, request.reset(), request.flows());
  for (const TierSet::Report& report : reports) {
    wire::TierStats* tier = reply->add_tiers();
    tier->set_name(report.name.ToString());
    tier->set_capacity_bytes(report.store.capacity_bytes);
    tier->set_used_bytes(report.store.used_bytes);
    tier->set_objects(report.store.objects);
    tier->set_token_rate(report.token_rate);
    tier->set_device_bytes_per_s(report.stats.device_bytes_per_s);
    tier->set_busy(report.busy);
    tier->set_requests_per_s(report.requests_per_s);
    if (reply->tiers_size() == 1) {
      *tier->mutable_classes() = reply->classes();
      continue;
    }
    reply->set_pace(reply->pace() + report.stats.pace);
    reply->set_bulk_let_go(reply->bulk_let_go() || report.stats.bulk_let_go);
    const auto alone = static_cast<uint64_t>(report.stats.alone_p99 / std::chrono::microseconds(1));
    if (alone > 0) reply->set_alone_p99_us(std::min(alone, reply->alone_p99_us()));
    for (const DispatcherClassStats& one : report.stats.classes) {
      wire::ClassStats* row = tier->add_classes();
      FillClassStats(one, row);
      Add(*row, RowOf(row->class_id(), reply));
    }
    reply->set_device_bytes_per_s(reply->device_bytes_per_s() + report.stats.device_bytes_per_s);
  }
  const StoreStats total = tiers.TotalStore();
  reply->set_capacity_bytes(total.capacity_bytes);
  reply->set_used_bytes(total.used_bytes);
  reply->set_objects(total.objects);
  reply->set_checksum_errors(total.checksum_errors);
  reply->set_commits(total.commits);
  reply->set_committed_ops(total.committed_ops);
  reply->set_background_bytes(total.background_bytes);
  uint64_t unmetered = total.unmetered_bytes;
  for (const TierSet::Report& report : reports) unmetered += report.stats.bypassed_bytes;
  reply->set_unmetered_bytes(unmetered);
  AddAllocation(tiers, reports.size(), reply);
}

}  // namespace weir::osd
