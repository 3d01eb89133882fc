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
  for (auto& [id, flows] : sums) {
    const wire::ClassInfo* info = FindClass(map, id);
    all.push_back(
        {ClassName(map, id), id, info == nullptr ? "user" : FlowText(*info), std::move(flows)});
  }
  std::stable_sort(all.begin(), all.end(), [](const ClassFlows& a, const ClassFlows& b) {
    return a.flows.device_us() > b.flows.device_us();
  });
  return all;
}

Json FlowDocument(const wire::FlowStats& flow, const wire::FlowsOfClass& flows,
                  const MountNames& mounts) {
  const bool by_cgroup = flow.flow().kind() == wire::Flow::CGROUP;
  const std::string* mount = MountOf(flow, mounts);
  Json json = {{"uid", nullptr},
               {"cgroup", nullptr},
               {"pid", nullptr},
               {"client", nullptr},
               {"session", fmt::format("{:016x}", flow.session())},
               {"share", ShareOf(flow, flows)},
               {"device_us_per_s", static_cast<uint64_t>(PerSecond(flows, flow.device_us()))},
               {"requests_per_s", PerSecond(flows, flow.requests())},
               {"bytes_per_s", static_cast<uint64_t>(PerSecond(flows, flow.bytes()))},
               {"light", IsMostlyLight(flow)}};
  if (!by_cgroup) json["uid"] = flow.flow().uid();
  if (by_cgroup && !flow.flow().cgroup().empty()) json["cgroup"] = flow.flow().cgroup();
  if (flow.flow().opener() != 0) json["pid"] = flow.flow().opener();
  if (mount != nullptr) json["client"] = *mount;
  return json;
}

Json FlowsDocument(const ClassFlows& one, const MountNames& mounts) {
  Json users = Json::array();
  for (const wire::FlowStats& flow : one.flows.users()) {
    Json json = FlowDocument(flow, one.flows, mounts);
    json.erase("pid");
    json["openers"] = flow.openers();
    users.push_back(json);
  }
  Json openers = Json::array();
  for (const wire::FlowStats& flow : one.flows.openers()) {
    openers.push_back(FlowDocument(flow, one.flows, mounts));
  }
  return {{"class", one.name},
          {"id", one.id},
          {"flow", one.kind},
          {"window_s", one.flows.window_s()},
          {"device_us_per_s", static_cast<uint64_t>(PerSecond(one.flows, one.flows.device_us()))},
          {"users_seen", one.flows.users_seen()},
          {"openers_seen", one.flows.openers_seen()},
          {"users", users},
          {"openers", openers}};
}

std::string FlowsScreen(const std::vector<ClassFlows>& all, const MountNames& mounts) {
  if (all.empty()) return "nobody had a request in the last seconds\n";
  cli::Table table({"CLASS", "WHO", "MOUNT", ">SHARE", ">DEVICE ms/s", ">REQUESTS/s", ">RATE", ""});
  for (const ClassFlows& one : all) {
    for (const wire::FlowStats& user : one.flows.users()) {
      const std::string* mount = MountOf(user, mounts);
      const std::string where =
          mount != nullptr ? *mount : fmt::format("session {:016x}", user.session());
      AddFlowRow(user, one, FlowName(user), where, &table);
      for (const wire::FlowStats& opener : one.flows.openers()) {
        if (!IsOf(opener, user)) continue;
        const uint64_t pid = opener.flow().opener();
        const std::string name = pid == 0 ? "unknown" : std::to_string(pid);
        AddFlowRow(opener, one, "  pid " + name, "", &table);
      }
    }
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

}  // namespace weir::osdctl
