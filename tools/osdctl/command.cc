#include "tools/osdctl/command.h"

#include <fmt/format.h>

#include <cstdio>

#include "common/base/ids.h"
#include "common/base/units.h"
#include "common/placement/cluster_map.h"
#include "common/qos/booking.h"
#include "common/qos/qos_config.h"
#include "tools/cli/values.h"

namespace weir::osdctl {

Result<ClusterLink*> Globals::Link() {
  if (link_ == nullptr) {
    auto link = ClusterLink::Open(cluster);
    if (!link.ok()) return link.status();
    link_ = std::move(*link);
  }
  return link_.get();
}

void PrintJson(const Json& body) {
  Json document = {{"version", 1}};
  document.update(body);
  fmt::print("{}\n", document.dump());
}

std::string RateOrDash(uint64_t bytes_per_s) {
  return bytes_per_s == 0 ? "-" : FormatRate(bytes_per_s);
}

std::string LimitText(const wire::ClassInfo& info) {
  return info.has_limit_bytes_per_s() ? FormatRate(info.limit_bytes_per_s()) : "max";
}

const wire::ClassInfo* FindClass(const wire::ClusterMap& map, const std::string& name) {
  for (const auto& info : map.classes()) {
    if (info.name() == name) return &info;
  }
  return nullptr;
}

const wire::ClassInfo* FindClass(const wire::ClusterMap& map, uint32_t id) {
  for (const auto& info : map.classes()) {
    if (info.id() == id) return &info;
  }
  return nullptr;
}

const wire::OsdInfo* FindOsd(const wire::ClusterMap& map, uint32_t id) {
  for (const auto& osd : map.osds()) {
    if (osd.id() == id) return &osd;
  }
  return nullptr;
}

std::string FlowText(const wire::ClassInfo& info) {
  return info.flow().empty() ? std::string(ToText(FlowKind::kUser)) : info.flow();
}

Status NoSuchClass(const std::string& name) {
  return {ErrorCode::kNotFound,
          fmt::format("there is no class '{}' (osdctl class ls shows them)", name)};
}

Status NoSuchOsd(uint32_t id) {
  return {ErrorCode::kNotFound,
          fmt::format("there is no osd.{} (osdctl osd ls shows what there is)", id)};
}

uint64_t PromisedOn(const wire::ClusterMap& map, const wire::OsdInfo& osd) {
  uint64_t promised = 0;
  const auto config = FromWire(osd.qos());
  if (config.ok()) promised = config->EffectiveBestEffortMin();
  for (const auto& info : map.classes()) {
    if (info.id() < kFirstUserClass.value) continue;
    const auto entry = FromWire(info);
    if (!entry.ok() || !config.ok()) continue;
    promised += BookingOf(entry->spec, *config, static_cast<size_t>(map.osds_size())).total();
  }
  return promised;
}

namespace {

void AddContract(const wire::ClassInfo& info, Json* json) {
  (*json)["reservation_iops"] = info.reservation().iops();
  (*json)["reservation_admission"] = nullptr;
  (*json)["reservation_leeway"] = nullptr;
  (*json)["reservation_users"] = Json::array();
  if (info.has_reservation()) {
    const std::string& admission = info.reservation().admission();
    (*json)["reservation_admission"] = admission.empty() ? "additive" : admission;
    const double leeway = info.reservation().leeway();
    (*json)["reservation_leeway"] = leeway > 0 ? leeway : kLeeway;
    for (const auto& user : info.reservation().users()) {
      (*json)["reservation_users"].push_back(
          {{"uid", user.uid()}, {"bytes_per_s", user.bytes_per_s()}});
    }
  }
  (*json)["latency_us"] = nullptr;
  (*json)["latency_percent"] = nullptr;
  if (info.latency_ns() > 0) {
    (*json)["latency_us"] = info.latency_ns() / 1000;
    (*json)["latency_percent"] = info.latency_part() * 100;
  }
  (*json)["max_pending"] = info.max_pending();
  (*json)["admission"] = info.admission().empty() ? "additive" : info.admission();
  const bool disk = !info.type().empty() && info.type() != ToText(ClassType::kBestEffort);
  (*json)["type"] = disk ? info.type() : "best-effort";
  (*json)["peak_percent"] = info.peak() * 100;
  (*json)["peak_bytes_per_s"] = info.peak_bytes_per_s();
  (*json)["throughput_bytes_per_s"] = info.throughput_bytes_per_s();
  (*json)["tolerance_percent"] = info.tolerance() * 100;
  if (info.booked_bytes_per_s() > 0) {
    (*json)["booked_per_osd_bytes_per_s"] = info.booked_bytes_per_s();
  }
}

}  // namespace

Json ToJson(const wire::ClassInfo& info) {
  Json json = {
      {"class", info.name()},         {"id", info.id()},
      {"weight", info.weight()},      {"min_weight", info.min_weight()},
      {"limit_bytes_per_s", nullptr}, {"reservation_bytes_per_s", info.reservation().bytes_per_s()},
      {"reservation_scope", nullptr}, {"reservation_ends_unix_ns", nullptr},
      {"users", info.users()},        {"groups", info.groups()}};
  if (info.has_limit_bytes_per_s()) json["limit_bytes_per_s"] = info.limit_bytes_per_s();
  if (info.has_reservation()) {
    json["reservation_scope"] = info.reservation().scope();
    if (info.reservation().has_ends_wall_ns()) {
      json["reservation_ends_unix_ns"] = info.reservation().ends_wall_ns();
    }
  }
  json["capacity_bytes"] = nullptr;
  if (info.capacity_bytes() > 0) json["capacity_bytes"] = info.capacity_bytes();
  json["flow"] = FlowText(info);
  json["limit_names_per_s"] = nullptr;
  if (info.limit_names_per_s() > 0) json["limit_names_per_s"] = info.limit_names_per_s();
  AddContract(info, &json);
  return json;
}

Json ToJson(const wire::ClusterMap& map, const wire::OsdInfo& osd) {
  const wire::QosConfig& qos = osd.qos();
  Json json = {{"id", osd.id()},
               {"up", osd.up()},
               {"uuid", osd.uuid()},
               {"endpoint", osd.endpoint()},
               {"capacity_bytes", osd.capacity_bytes()},
               {"used_bytes", osd.used_bytes()},
               {"token_rate_bytes_per_s", qos.token_rate()},
               {"best_effort_min_bytes_per_s", nullptr},
               {"promised_bytes_per_s", PromisedOn(map, osd)},
               {"profile", qos.profile()},
               {"guarantee", qos.guarantee_htb() ? "htb" : "none"},
               {"surplus", qos.surplus()},
               {"sharing", qos.sharing()},
               {"gate", qos.gate()},
               {"dispatch", qos.dispatch()},
               {"cost", qos.cost()},
               {"maximizer", qos.maximizer()},
               {"anticipation", qos.anticipation()},
               {"service_estimate_us", nullptr},
               {"processor_pressure_percent", nullptr},
               {"depth", qos.depth()},
               {"iops_max", nullptr}};
  if (osd.tiers_size() > 0) {
    json["allocation"] = qos.allocation().empty() ? "baa" : qos.allocation();
    json["allocation_period_s"] = static_cast<double>(qos.allocation_period_ns()) / 1e9;
    json["allocation_window_s"] = static_cast<double>(qos.allocation_window_ns()) / 1e9;
    json["allocation_alarm"] = !qos.has_allocation_alarm() || qos.allocation_alarm();
    json["tiers"] = Json::array();
    for (const auto& tier : osd.tiers()) {
      json["tiers"].push_back({{"tier", tier.name()}, {"capacity_bytes", tier.capacity_bytes()}});
    }
  }
  if (auto config = FromWire(qos); config.ok()) {
    json["processor_pressure_percent"] = config->processor_pressure;
    json["best_effort_min_bytes_per_s"] = config->EffectiveBestEffortMin();
    json["iops_max"] = static_cast<uint64_t>(config->EffectiveIopsMax());
  }
  if (qos.depth() == 0) json["depth"] = "auto";
  if (qos.service_estimate_ns() > 0) {
    json["service_estimate_us"] = qos.service_estimate_ns() / 1000;
  }
  return json;
}

Json ToJson(const wire::PoolInfo& pool) {
  return {{"pool", pool.name()},
          {"id", pool.id()},
          {"osds", pool.osds()},
          {"replicas", pool.replicas()},
          {"slots", pool.chains_size()},
          {"in_use", pool.in_use()},
          {"takes_all_osds", pool.all_osds()}};
}

void AddNamedVerb(CLI::App* parent, Globals& globals, const NamedThing& thing,
                  const std::string& verb, const std::string& help,
                  Result<ExitCode> (*run)(Globals&, const std::string&)) {
  auto* added = parent->add_subcommand(verb, help);
  auto target = std::make_shared<std::string>();
  added->add_option(thing.what, *target, "its name")->required()->type_name(thing.placeholder);
  added->footer(fmt::format("Example: osdctl {} {} {}", thing.what, verb, thing.example));
  added->callback([&globals, target, run] {
    globals.action = [target, run](Globals& g) { return run(g, *target); };
  });
}

}  // namespace weir::osdctl
