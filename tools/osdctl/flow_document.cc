#include "tools/osdctl/flow_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/units.h"
#include "common/placement/flow_totals.h"
#include "tools/cli/table.h"

namespace weir::osdctl {
namespace {

double PerSecond(const wire::FlowsOfClass& flows, uint64_t count) {
  return flows.window_s() > 0 ? static_cast<double>(count) / flows.window_s() : 0;
}

double ShareOf(const wire::FlowStats& flow, const wire::FlowsOfClass& flows) {
  const auto total = static_cast<double>(flows.device_us());
  return total > 0 ? std::min(1.0, static_cast<double>(flow.device_us()) / total) : 0;
}

// Null: it is none that the MDS knows.
const std::string* MountOf(const wire::FlowStats& flow, const MountNames& mounts) {
  const auto found = mounts.find(flow.session());
  return found == mounts.end() ? nullptr : &found->second;
}

bool IsOf(const wire::FlowStats& opener, const wire::FlowStats& user) {
  const wire::Flow& a = opener.flow();
  const wire::Flow& b = user.flow();
  const bool same = a.kind() == wire::Flow::CGROUP ? a.cgroup() == b.cgroup() : a.uid() == b.uid();
  return same && a.kind() == b.kind() && opener.session() == user.session();
}

void AddFlowRow(const wire::FlowStats& flow, const ClassFlows& of, const std::string& who,
                const std::string& mount, cli::Table* table) {
  const auto rate = static_cast<uint64_t>(PerSecond(of.flows, flow.bytes()));
  table->AddRow({of.name, who, mount, fmt::format("{:.0f}%", 100 * ShareOf(flow, of.flows)),
                 fmt::format("{:.1f}", PerSecond(of.flows, flow.device_us()) / 1000),
                 fmt::format("{:.0f}", PerSecond(of.flows, flow.requests())), FormatRate(rate),
                 IsMostlyLight(flow) ? "light" : "-"});
}

// Who it is.
Json WhoDocument(const wire::FlowStats& flow, const MountNames& mounts) {
  const bool by_cgroup = flow.flow().kind() == wire::Flow::CGROUP;
  const std::string* mount = MountOf(flow, mounts);
  Json json = {{"uid", nullptr},
               {"cgroup", nullptr},
               {"pid", nullptr},
               {"client", nullptr},
               {"session", fmt::format("{:016x}", flow.session())}};
  if (!by_cgroup && flow.flow().uid() != kUidOfMount) json["uid"] = flow.flow().uid();
  if (by_cgroup && !flow.flow().cgroup().empty()) json["cgroup"] = flow.flow().cgroup();
  if (flow.flow().opener() != 0) json["pid"] = flow.flow().opener();
  if (mount != nullptr) json["client"] = *mount;
  return json;
}

std::string MountText(const wire::FlowStats& flow, const MountNames& mounts) {
  const std::string* mount = MountOf(flow, mounts);
  return mount != nullptr ? *mount : fmt::format("session {:016x}", flow.session());
}

// A row for each user, and one for each of his openers below it.
template <typename AddOne>
void AddRowsOf(const ClassFlows& one, const MountNames& mounts, const AddOne& add) {
  for (const wire::FlowStats& user : one.flows.users()) {
    add(user, FlowName(user), MountText(user, mounts));
    for (const wire::FlowStats& opener : one.flows.openers()) {
      if (!IsOf(opener, user)) continue;
      const uint64_t pid = opener.flow().opener();
      add(opener, "  pid " + (pid == 0 ? std::string("unknown") : std::to_string(pid)), "");
    }
  }
}

void SortBusiestFirst(std::vector<ClassFlows>* all) {
  std::stable_sort(all->begin(), all->end(), [](const ClassFlows& a, const ClassFlows& b) {
    return a.flows.device_us() > b.flows.device_us();
  });
}

ClassFlows Named(const wire::ClusterMap& map, uint32_t id, wire::FlowsOfClass flows) {
  const wire::ClassInfo* info = FindClass(map, id);
  return {ClassName(map, id), id, info == nullptr ? "user" : FlowText(*info), std::move(flows)};
}

// The arrays of a class's users and openers.
template <typename DocumentOf>
void AddFlowArrays(const ClassFlows& one, const DocumentOf& document_of, Json* json) {
  Json users = Json::array();
  for (const wire::FlowStats& flow : one.flows.users()) {
    Json user = document_of(flow);
    user.erase("pid");
    user["openers"] = flow.openers();
    users.push_back(std::move(user));
  }
  Json openers = Json::array();
  for (const wire::FlowStats& flow : one.flows.openers()) openers.push_back(document_of(flow));
  (*json)["users_seen"] = one.flows.users_seen();
  (*json)["openers_seen"] = one.flows.openers_seen();
  (*json)["users"] = std::move(users);
  (*json)["openers"] = std::move(openers);
}

}  // namespace

MountNames MountNamesOf(const wire::StatusReply& status) {
  MountNames names;
  for (const auto& mount : status.mounts()) names[mount.session()] = mount.client_name();
  return names;
}

std::vector<ClassFlows> FlowsOf(const wire::ClusterMap& map, const StatsByOsd& stats,
                                const std::optional<uint32_t>& only) {
  std::map<uint32_t, wire::FlowsOfClass> sums;
  for (const auto& [osd, reply] : stats) {
    for (const wire::ClassStats& row : reply.classes()) {
      if (only.has_value() && *only != row.class_id()) continue;
      if (row.has_flows()) AddFlows(row.flows(), &sums[row.class_id()]);
    }
  }
  std::vector<ClassFlows> all;
  all.reserve(sums.size());
  for (auto& [id, flows] : sums) all.push_back(Named(map, id, std::move(flows)));
  SortBusiestFirst(&all);
  return all;
}

Json FlowDocument(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                  const MountNames& mounts) {
  Json json = WhoDocument(flow, mounts);
  json["share"] = ShareOf(flow, flows);
  json["device_us_per_s"] = static_cast<uint64_t>(PerSecond(flows, flow.device_us()));
  json["requests_per_s"] = PerSecond(flows, flow.requests());
  json["bytes_per_s"] = static_cast<uint64_t>(PerSecond(flows, flow.bytes()));
  json["light"] = IsMostlyLight(flow);
  return json;
}

Json FlowsDocument(const ClassFlows& one, const MountNames& mounts) {
  Json json = {
      {"class", one.name},
      {"id", one.id},
      {"flow", one.kind},
      {"window_s", one.flows.window_s()},
      {"device_us_per_s", static_cast<uint64_t>(PerSecond(one.flows, one.flows.device_us()))}};
  const auto document_of = [&](const auto& flow) { return FlowDocument(flow, one.flows, mounts); };
  AddFlowArrays(one, document_of, &json);
  return json;
}

std::string FlowsScreen(const std::vector<ClassFlows>& all, const MountNames& mounts) {
  if (all.empty()) return "nobody had a request in the last seconds\n";
  cli::Table table({"CLASS", "WHO", "MOUNT", ">SHARE", ">DEVICE ms/s", ">REQUESTS/s", ">RATE", ""});
  for (const ClassFlows& one : all) {
    AddRowsOf(one, mounts, [&](const auto& flow, const auto& who, const auto& mount) {
      AddFlowRow(flow, one, who, mount, &table);
    });
  }
  return table.Render();
}

const wire::FlowStats* Heaviest(const wire::FlowsOfClass& flows) {
  if (flows.users_size() > 1) return &flows.users(0);
  return flows.openers_size() > 1 ? &flows.openers(0) : nullptr;
}

std::string HeaviestText(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                         const MountNames& mounts) {
  const std::string* mount = MountOf(flow, mounts);
  return fmt::format("{}{} takes {:.0f} % of its device time", FlowName(flow),
                     mount == nullptr ? "" : " on " + *mount, 100 * ShareOf(flow, flows));
}

uint64_t MeanWaitUs(uint64_t waited_us, uint64_t requests, uint64_t waiting) {
  const uint64_t all = requests + waiting;
  return all == 0 ? 0 : waited_us / all;
}

std::vector<ClassFlows> NameFlowsOf(const wire::ClusterMap& map, const wire::ClassLoadReply& load,
                                    const std::optional<uint32_t>& only) {
  std::vector<ClassFlows> all;
  for (const wire::ClassLoad& row : load.classes()) {
    if (!row.has_flows() || (only.has_value() && *only != row.class_id())) continue;
    all.push_back(Named(map, row.class_id(), row.flows()));
  }
  SortBusiestFirst(&all);
  return all;
}

Json NameFlowDocument(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                      const MountNames& mounts) {
  Json json = WhoDocument(flow, mounts);
  json["share"] = ShareOf(flow, flows);
  json["operations_per_s"] = PerSecond(flows, flow.requests());
  json["waiting"] = flow.waiting();
  json["wait_us"] = MeanWaitUs(flow.waited_us(), flow.requests(), flow.waiting());
  json["light"] = IsMostlyLight(flow);
  return json;
}

Json NameFlowsDocument(const ClassFlows& one, const MountNames& mounts) {
  const wire::FlowsOfClass& flows = one.flows;
  Json json = {{"class", one.name},
               {"id", one.id},
               {"flow", one.kind},
               {"window_s", flows.window_s()},
               {"operations_per_s", PerSecond(flows, flows.requests())},
               {"waiting", flows.waiting()},
               {"wait_us", MeanWaitUs(flows.waited_us(), flows.requests(), flows.waiting())}};
  const auto document_of = [&](const auto& flow) { return NameFlowDocument(flow, flows, mounts); };
  AddFlowArrays(one, document_of, &json);
  return json;
}

std::string NameFlowsScreen(const std::vector<ClassFlows>& all, const MountNames& mounts,
                            const std::string& missing) {
  if (!missing.empty())
    return fmt::format("mds: it is not known who asks for names: {}\n", missing);
  if (all.empty()) return "mds: nobody asked for names in the last seconds\n";
  cli::Table table({"CLASS", "WHO", "MOUNT", ">SHARE", ">OPERATIONS/s", ">WAIT", ">WAIT ms", ""});
  for (const ClassFlows& one : all) {
    AddRowsOf(one, mounts, [&](const auto& flow, const auto& who, const auto& mount) {
      const uint64_t wait_us = MeanWaitUs(flow.waited_us(), flow.requests(), flow.waiting());
      table.AddRow({one.name, who, mount, fmt::format("{:.0f}%", 100 * ShareOf(flow, one.flows)),
                    fmt::format("{:.0f}", PerSecond(one.flows, flow.requests())),
                    std::to_string(flow.waiting()),
                    fmt::format("{:.1f}", static_cast<double>(wait_us) / 1000),
                    IsMostlyLight(flow) ? "light" : "-"});
    });
  }
  return "mds: operations on names\n" + table.Render();
}

std::string NameHolderText(const wire::FlowStats& flow, const ClassFlows& of,
                           const MountNames& mounts) {
  const std::string* mount = MountOf(flow, mounts);
  return fmt::format("{}{} has {:.0f} % of the operations on names of {}, {} of {} that wait",
                     FlowName(flow), mount == nullptr ? "" : " on " + *mount,
                     100 * ShareOf(flow, of.flows), of.name, flow.waiting(), of.flows.waiting());
}

}  // namespace weir::osdctl
