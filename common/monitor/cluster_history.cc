#include "common/monitor/cluster_history.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/ids.h"
#include "common/monitor/troubles.h"
#include "common/placement/class_promise.h"
#include "common/placement/flow_totals.h"

namespace weir::monitor {
namespace {

using Json = nlohmann::ordered_json;

const wire::ClassStats* FindRow(const wire::OsdStatsReply& stats, uint32_t id) {
  for (const auto& row : stats.classes()) {
    if (row.class_id() == id) return &row;
  }
  return nullptr;
}

Json OsdJson(const wire::OsdInfo& osd, const Look& look) {
  const auto stats = look.osds.find(osd.id());
  const bool answers = stats != look.osds.end();
  Json json = {{"id", osd.id()},
               {"up", osd.up()},
               {"answers", answers},
               {"profile", osd.qos().profile()},
               {"capacity_bytes", osd.capacity_bytes()},
               {"used_bytes", osd.used_bytes()},
               {"base_token_rate_bytes_per_s", osd.qos().token_rate()},
               {"token_rate_bytes_per_s", 0},
               {"device_bytes_per_s", 0}};
  if (answers) {
    json["used_bytes"] = stats->second.used_bytes();
    json["token_rate_bytes_per_s"] = stats->second.token_rate();
    json["device_bytes_per_s"] = stats->second.device_bytes_per_s();
  }
  return json;
}

constexpr int kFlowsShown = 5;

// Who it is, and his part.
Json WhoJson(const wire::FlowStats& flow, const wire::FlowsOfClass& flows, const Look& look) {
  const auto total = static_cast<double>(flows.device_us());
  Json json = {{"who", FlowName(flow)},
               {"client", nullptr},
               {"share", total > 0 ? static_cast<double>(flow.device_us()) / total : 0}};
  for (const auto& mount : look.status.mounts()) {
    if (mount.session() == flow.session()) json["client"] = mount.client_name();
  }
  return json;
}

double PerSecond(uint64_t count, const wire::FlowsOfClass& flows) {
  return static_cast<double>(count) / (flows.window_s() > 0 ? flows.window_s() : 1);
}

// `json_of(flow)`: of one.
template <typename JsonOf>
Json TopOf(const wire::FlowsOfClass& flows, const JsonOf& json_of) {
  const auto first = [&](const auto& rows) {
    Json list = Json::array();
    for (int i = 0; i < std::min(kFlowsShown, rows.size()); ++i) list.push_back(json_of(rows[i]));
    return list;
  };
  return {{"window_s", flows.window_s()},
          {"users_seen", flows.users_seen()},
          {"openers_seen", flows.openers_seen()},
          {"users", first(flows.users())},
          {"openers", first(flows.openers())}};
}

Json FlowsJson(uint32_t id, const Look& look) {
  wire::FlowsOfClass flows;
  for (const auto& [osd, stats] : look.osds) {
    const wire::ClassStats* row = FindRow(stats, id);
    if (row != nullptr && row->has_flows()) AddFlows(row->flows(), &flows);
  }
  return TopOf(flows, [&](const wire::FlowStats& flow) {
    Json json = WhoJson(flow, flows, look);
    json["requests_per_s"] = PerSecond(flow.requests(), flows);
    json["bytes_per_s"] = PerSecond(flow.bytes(), flows);
    json["light"] = IsMostlyLight(flow);
    return json;
  });
}

// Operations on names at the MDS.
Json NamesJson(uint32_t id, const Look& look) {
  wire::FlowsOfClass flows;
  for (const wire::ClassLoad& row : look.names.classes()) {
    if (row.class_id() == id) flows = row.flows();
  }
  return TopOf(flows, [&](const wire::FlowStats& flow) {
    Json json = WhoJson(flow, flows, look);
    const uint64_t all = flow.requests() + flow.waiting();
    json["operations_per_s"] = PerSecond(flow.requests(), flows);
    json["waiting"] = flow.waiting();
    json["wait_us"] = all == 0 ? 0 : flow.waited_us() / all;
    json["light"] = IsMostlyLight(flow);
    return json;
  });
}

Json ClassJson(const wire::ClassInfo& info, const Look& look) {
  uint64_t violations = 0, misses = 0;
  for (const auto& [id, stats] : look.osds) {
    const wire::ClassStats* row = FindRow(stats, info.id());
    if (row == nullptr) continue;
    violations += row->violation_seconds();
    misses += row->deadline_misses();
  }
  Json json = {{"class", info.name()},
               {"id", info.id()},
               {"system", info.id() != kBestEffort.value && info.id() < kFirstUserClass.value},
               {"weight", info.weight()},
               {"promised_bytes_per_s", PromisedTo(look.status.map(), info)},
               {"promised_iops", info.reservation().iops()},
               {"limit_bytes_per_s", nullptr},
               {"latency_bound_us", nullptr},
               {"violation_seconds", violations},
               {"deadline_misses", misses},
               {"flow", info.flow().empty() ? "user" : info.flow()},
               {"flows", FlowsJson(info.id(), look)},
               {"names", NamesJson(info.id(), look)}};
  if (info.has_limit_bytes_per_s()) json["limit_bytes_per_s"] = info.limit_bytes_per_s();
  if (info.latency_ns() > 0) json["latency_bound_us"] = info.latency_ns() / 1000;
  return json;
}

int64_t Millis(WallTime wall) {
  return wall.ns / 1'000'000;
}

}  // namespace

std::vector<ClusterHistory::ClassSample> ClusterHistory::Between(const Look& before,
                                                                 const Look& now, double seconds) {
  std::map<uint32_t, ClassSample> all;
  std::map<uint32_t, LatencyCounts> latencies;
  for (const auto& [osd, stats] : now.osds) {
    const auto old = before.osds.find(osd);
    for (const auto& row : stats.classes()) {
      ClassSample& sample = all[row.class_id()];
      sample.queued += row.queued_ops();
      if (old == before.osds.end()) continue;
      const wire::ClassStats* had = FindRow(old->second, row.class_id());
      const wire::ClassStats was = had == nullptr ? wire::ClassStats() : *had;
      if (row.arrived_bytes() < was.arrived_bytes() || row.served_bytes() < was.served_bytes() ||
          row.served_ops() < was.served_ops()) {
        continue;
      }
      const auto rate = [&](uint64_t grown) { return static_cast<double>(grown) / seconds; };
      sample.demand += rate(row.arrived_bytes() - was.arrived_bytes());
      sample.served += rate(row.served_bytes() - was.served_bytes());
      sample.ops += rate(row.served_ops() - was.served_ops());
      latencies[row.class_id()].Add(LatenciesOf(row).Since(LatenciesOf(was)));
    }
  }
  std::vector<ClassSample> busy;
  for (auto& [id, sample] : all) {
    if (sample.demand + sample.ops == 0 && sample.queued == 0) continue;
    sample.id = id;
    sample.p50_us = latencies[id].Quantile(0.5);
    sample.p99_us = latencies[id].Quantile(0.99);
    busy.push_back(sample);
  }
  return busy;
}

void ClusterHistory::Add(Look look) {
  silence_.clear();
  if (last_.has_value()) {
    const double seconds = ToSeconds(look.at - last_->at);
    if (seconds > 0) {
      samples_.push_back({++taken_, look.wall, seconds, Between(*last_, look, seconds)});
    }
    if (samples_.size() > kSamples) samples_.pop_front();
  }
  last_ = std::move(look);
}

std::string ClusterHistory::Document(uint64_t since) const {
  Json troubles = Json::array(), osds = Json::array(), classes = Json::array();
  if (!silence_.empty()) troubles.push_back("the MDS does not answer: " + silence_);
  wire::StatusReply status;
  if (last_.has_value()) {
    status = last_->status;
    for (const std::string& text : TroublesOf(last_->status, last_->osds, last_->silence)) {
      troubles.push_back(text);
    }
    for (const auto& osd : status.map().osds()) osds.push_back(OsdJson(osd, *last_));
    for (const auto& info : status.map().classes()) classes.push_back(ClassJson(info, *last_));
  } else if (silence_.empty()) {
    troubles.push_back("the first look at the cluster is not over yet");
  }
  Json names_missing;
  if (last_.has_value() && !last_->names_missing.empty()) names_missing = last_->names_missing;
  Json samples = Json::array();
  const bool known = since <= taken_;
  for (const Sample& sample : samples_) {
    if (known && sample.number <= since) continue;
    Json rows = Json::array();
    for (const ClassSample& row : sample.classes) {
      rows.push_back({row.id, static_cast<uint64_t>(row.demand), static_cast<uint64_t>(row.served),
                      row.ops, row.queued, row.p50_us, row.p99_us});
    }
    samples.push_back({{"number", sample.number},
                       {"at_ms", Millis(sample.wall)},
                       {"interval_s", sample.seconds},
                       {"rows", rows}});
  }
  const Json document = {{"version", 1},
                         {"started_ms", Millis(started_)},
                         {"at_ms", last_.has_value() ? Millis(last_->wall) : 0},
                         {"health", troubles.empty() ? "ok" : "unhealthy"},
                         {"troubles", troubles},
                         {"names_missing", names_missing},
                         {"cluster_uuid", status.map().cluster_uuid()},
                         {"epoch", status.map().epoch()},
                         {"sessions", status.sessions()},
                         {"inodes", status.inodes()},
                         {"pending_purges", status.pending_purges()},
                         {"osds", osds},
                         {"classes", classes},
                         {"columns",
                          {"id", "demand_bytes_per_s", "served_bytes_per_s", "served_per_s",
                           "queued_ops", "p50_us", "p99_us"}},
                         {"samples", samples}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::monitor
