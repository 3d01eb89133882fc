#include "tools/osdctl/stat_document.h"

#include <algorithm>

#include "common/placement/class_promise.h"
#include "tools/osdctl/tiers.h"

namespace weir::osdctl {
namespace {

const wire::ClassStats* FindRow(const wire::OsdStatsReply& stats, uint32_t id) {
  for (const auto& row : stats.classes()) {
    if (row.class_id() == id) return &row;
  }
  return nullptr;
}

void AddGrowth(const wire::ClassStats& row, const wire::OsdStatsReply& before, double seconds,
               ClassRate* rate) {
  const wire::ClassStats* old = FindRow(before, row.class_id());
  const uint64_t old_arrived = old == nullptr ? 0 : old->arrived_bytes();
  const uint64_t old_served = old == nullptr ? 0 : old->served_bytes();
  const uint64_t old_broken = old == nullptr ? 0 : old->violation_seconds();
  if (row.arrived_bytes() < old_arrived || row.served_bytes() < old_served) return;
  rate->demand += static_cast<double>(row.arrived_bytes() - old_arrived) / seconds;
  rate->served += static_cast<double>(row.served_bytes() - old_served) / seconds;
  if (row.violation_seconds() > old_broken) {
    rate->new_violations += row.violation_seconds() - old_broken;
  }
}

}  // namespace

std::string ClassName(const wire::ClusterMap& map, uint32_t id) {
  const wire::ClassInfo* info = FindClass(map, id);
  return info == nullptr ? "class." + std::to_string(id) : info->name();
}

std::vector<wire::ClassStats> RowsOf(const wire::ClusterMap& map, const wire::OsdStatsReply& stats,
                                     const std::optional<uint32_t>& only) {
  std::vector<wire::ClassStats> rows;
  for (const auto& info : map.classes()) {
    if (only.has_value() && *only != info.id()) continue;
    const wire::ClassStats* row = FindRow(stats, info.id());
    rows.push_back(row == nullptr ? wire::ClassStats() : *row);
    rows.back().set_class_id(info.id());
  }
  for (const auto& row : stats.classes()) {
    if (!only.has_value() && FindClass(map, row.class_id()) == nullptr) rows.push_back(row);
  }
  return rows;
}

Json StatDocument(const wire::ClusterMap& map, const wire::OsdStatsReply& stats,
                  const std::optional<uint32_t>& only) {
  Json classes = Json::array();
  for (const auto& row : RowsOf(map, stats, only)) {
    const wire::ClassInfo* info = FindClass(map, row.class_id());
    classes.push_back(
        {{"class", ClassName(map, row.class_id())},
         {"id", row.class_id()},
         {"reservation_bytes_per_s", info == nullptr ? 0 : info->reservation().bytes_per_s()},
         {"arrived_bytes", row.arrived_bytes()},
         {"served_bytes", row.served_bytes()},
         {"served_ops", row.served_ops()},
         {"queued_ops", row.queued_ops()},
         {"guaranteed_bytes", row.guaranteed_bytes()},
         {"surplus_bytes", row.surplus_bytes()},
         {"outside_bytes", row.outside_bytes()},
         {"latency_us",
          {{"p50", row.latency().p50_us()},
           {"p90", row.latency().p90_us()},
           {"p99", row.latency().p99_us()},
           {"p999", row.latency().p999_us()}}},
         {"recent_latency_us",
          {{"p50", row.recent_latency().p50_us()},
           {"p90", row.recent_latency().p90_us()},
           {"p99", row.recent_latency().p99_us()},
           {"p999", row.recent_latency().p999_us()}}},
         {"bound_us", {{"quantile", row.bound_quantile_us()}, {"target", row.bound_target_us()}}},
         {"deadline_misses", row.deadline_misses()},
         {"violation_seconds", row.violation_seconds()}});
  }
  Json document = {{"id", stats.osd_id()},
                   {"token_rate_bytes_per_s", stats.token_rate()},
                   {"base_token_rate_bytes_per_s", stats.base_token_rate()},
                   {"device_bytes_per_s", stats.device_bytes_per_s()},
                   {"pace_bytes_per_s", stats.pace()},
                   {"bulk_let_go", stats.bulk_let_go()},
                   {"alone_p99_us", stats.alone_p99_us()},
                   {"disk",
                    {{"bytes_per_s", stats.disk().bytes_per_s()},
                     {"give_or_take_bytes_per_s", stats.disk().give_or_take()},
                     {"samples", stats.disk().samples()},
                     {"slow", stats.disk().slow()},
                     {"alarms", stats.disk().alarms()}}},
                   {"classes", classes},
                   {"window_s", stats.window_s()},
                   {"capacity_bytes", stats.capacity_bytes()},
                   {"used_bytes", stats.used_bytes()},
                   {"objects", stats.objects()},
                   {"checksum_errors", stats.checksum_errors()},
                   {"commits", stats.commits()},
                   {"committed_ops", stats.committed_ops()},
                   {"epoch", stats.epoch()},
                   {"background_bytes", stats.background_bytes()},
                   {"background_floor_bytes_per_s", stats.background_floor()},
                   {"unmetered_bytes", stats.unmetered_bytes()}};
  if (stats.tiers_size() > 0) {
    document["tiers"] = TiersDocument(map, stats);
    document["allocation"] = AllocationDocument(map, stats);
  }
  return document;
}

std::vector<ClassRate> RatesBetween(const wire::ClusterMap& map, const StatsByOsd& before,
                                    const StatsByOsd& after, double seconds) {
  std::map<uint32_t, ClassRate> rates;
  for (const auto& info : map.classes()) {
    ClassRate& rate = rates[info.id()];
    rate.name = info.name();
    rate.id = info.id();
    rate.promised = PromisedTo(map, info);
  }
  double total = 0;
  for (const auto& [osd, stats] : after) {
    const auto old = before.find(osd);
    for (const auto& row : stats.classes()) {
      ClassRate& rate = rates[row.class_id()];
      rate.id = row.class_id();
      rate.name = ClassName(map, row.class_id());
      rate.queued_ops += row.queued_ops();
      rate.violation_seconds += row.violation_seconds();
      rate.p50_us = std::max(rate.p50_us, row.recent_latency().p50_us());
      rate.p99_us = std::max(rate.p99_us, row.recent_latency().p99_us());
      const double served_before = rate.served;
      if (old != before.end()) AddGrowth(row, old->second, seconds, &rate);
      total += rate.served - served_before;
    }
  }
  std::vector<ClassRate> list;
  for (auto& [id, rate] : rates) {
    rate.share = total > 0 ? rate.served / total : 0;
    list.push_back(std::move(rate));
  }
  return list;
}

}  // namespace weir::osdctl
