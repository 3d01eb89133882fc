// osdctl status: health in one screen.

#include <fmt/format.h>

#include "common/base/units.h"
#include "common/monitor/troubles.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/table.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/mds_load.h"
#include "tools/osdctl/stat_document.h"
#include "tools/osdctl/why_document.h"

namespace weir::osdctl {
namespace {

struct Health {
  wire::StatusReply reply;
  std::map<uint32_t, wire::OsdStatsReply> osds;  // of those that answered
  wire::ClassLoadReply load;
  std::vector<std::string> troubles;
  std::vector<std::string> notes;
};

Result<Health> AskHealth(ClusterLink& link) {
  Health health;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_STATUS, wire::Empty(), &health.reply));
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_CLASS_LOAD, wire::Empty(), &health.load));
  std::vector<wire::OsdInfo> up;
  for (const auto& osd : health.reply.map().osds()) {
    if (osd.up()) up.push_back(osd);
  }
  auto answers = link.Stats(up, false, true);
  std::map<uint32_t, std::string> silence;
  for (size_t i = 0; i < up.size(); ++i) {
    if (answers[i].ok()) {
      health.osds[up[i].id()] = std::move(*answers[i]);
    } else if (answers[i].status().code() != ErrorCode::kUnreachable) {
      silence[up[i].id()] = answers[i].status().message();
    }
  }
  health.troubles = monitor::TroublesOf(health.reply, health.osds, silence);
  health.notes = monitor::NotesOf(health.reply, health.osds);
  return health;
}

// By class, in seconds of all OSDs since their counters' start.
using Violations = std::map<uint32_t, uint64_t>;

Violations ViolationsOf(const Health& health) {
  Violations violations;
  for (const auto& [osd, stats] : health.osds) {
    for (const auto& row : stats.classes()) {
      if (row.violation_seconds() > 0) violations[row.class_id()] += row.violation_seconds();
    }
  }
  return violations;
}

uint64_t Total(const Violations& violations) {
  uint64_t seconds = 0;
  for (const auto& [id, one] : violations) seconds += one;
  return seconds;
}

std::string ViolationsText(const wire::ClusterMap& map, const Violations& violations) {
  if (violations.empty()) return "no promise was broken since the counters' start";
  std::string text;
  for (const auto& [id, seconds] : violations) {
    text += fmt::format("{}{} in {} s", text.empty() ? "" : ", ", ClassName(map, id), seconds);
  }
  return "promises broken since the counters' start: " + text + " (osdctl why CLASS)";
}

Json Document(const Health& health, const std::string& endpoint) {
  const wire::ClusterMap& map = health.reply.map();
  Json osds = Json::array();
  for (const auto& osd : map.osds()) osds.push_back(ToJson(map, osd));
  Json promises = Json::array();
  for (const auto& info : map.classes()) {
    if (info.has_reservation()) promises.push_back(ToJson(info));
  }
  const Violations violations = ViolationsOf(health);
  Json broken = Json::array();
  for (const auto& [id, seconds] : violations) {
    broken.push_back({{"class", ClassName(map, id)}, {"id", id}, {"seconds", seconds}});
  }
  Json capacities = Json::array();
  for (const auto& info : map.classes()) {
    if (info.capacity_bytes() == 0) continue;
    capacities.push_back({{"class", info.name()},
                          {"capacity_bytes", info.capacity_bytes()},
                          {"held_bytes", HeldBy(health.load, info.id())}});
  }
  Json mounts = Json::array();
  for (const auto& mount : health.reply.mounts()) {
    mounts.push_back({{"client", mount.client_name()}, {"path", PathJson(mount.path())}});
  }
  return {{"health", health.troubles.empty() ? "ok" : "unhealthy"},
          {"troubles", health.troubles},
          {"notes", health.notes},
          {"cluster_uuid", map.cluster_uuid()},
          {"epoch", map.epoch()},
          {"near_full", map.near_full()},
          {"mds", {{"endpoint", endpoint}}},
          {"sessions", health.reply.sessions()},
          {"inodes", health.reply.inodes()},
          {"pending_purges", health.reply.pending_purges()},
          {"violation_seconds", Total(violations)},
          {"violations", broken},
          {"osds", osds},
          {"mounts", mounts},
          {"promises", promises},
          {"capacities", capacities}};
}

void PrintCapacities(const Health& health) {
  cli::Table table({"CLASS", ">HELD", ">CAPACITY"});
  bool any = false;
  for (const auto& info : health.reply.map().classes()) {
    if (info.capacity_bytes() == 0) continue;
    any = true;
    table.AddRow({info.name(), FormatSize(HeldBy(health.load, info.id())),
                  FormatSize(info.capacity_bytes())});
  }
  if (any) fmt::print("\n{}", table.Render());
}

void PrintMounts(const Health& health) {
  if (health.reply.mounts().empty()) return;
  cli::Table table({"MOUNT", "PATH"});
  for (const auto& mount : health.reply.mounts()) {
    table.AddRow({mount.client_name(), std::string(ToText(ToKernelPath(mount.path())))});
  }
  fmt::print("\n{}", table.Render());
}

void PrintScreen(const Health& health, const std::string& endpoint) {
  const wire::ClusterMap& map = health.reply.map();
  fmt::print("health   {}\n", health.troubles.empty() ? "ok" : "UNHEALTHY");
  for (const std::string& trouble : health.troubles) fmt::print("         ! {}\n", trouble);
  for (const std::string& note : health.notes) fmt::print("note     {}\n", note);
  fmt::print("cluster  {}  epoch {}\n", map.cluster_uuid(), map.epoch());
  fmt::print("mds      {}  {} sessions, {} inodes, {} purges pending\n", endpoint,
             health.reply.sessions(), health.reply.inodes(), health.reply.pending_purges());
  fmt::print("{}\n\n", ViolationsText(map, ViolationsOf(health)));
  cli::Table osds(
      {"OSD", "STATE", ">CAPACITY", ">USED", ">TOKEN RATE", ">PROMISED", ">NOW", "PROFILE"});
  for (const auto& osd : map.osds()) {
    const auto stats = health.osds.find(osd.id());
    const bool answered = stats != health.osds.end();
    osds.AddRow({fmt::format("osd.{}", osd.id()), osd.up() ? "up" : "DOWN",
                 FormatSize(osd.capacity_bytes()), FormatSize(osd.used_bytes()),
                 RateOrDash(osd.qos().token_rate()), FormatRate(PromisedOn(map, osd)),
                 answered ? FormatRate(stats->second.device_bytes_per_s()) : "-",
                 osd.qos().profile()});
  }
  fmt::print("{}", osds.Render());
  PrintMounts(health);
  cli::Table promises({"CLASS", ">RESERVATION", "SCOPE", ">WEIGHT", ">LIMIT"});
  bool any = false;
  for (const auto& info : map.classes()) {
    if (!info.has_reservation()) continue;
    any = true;
    promises.AddRow({info.name(), FormatRate(info.reservation().bytes_per_s()),
                     info.reservation().scope(), fmt::format("{:g}", info.weight()),
                     LimitText(info)});
  }
  if (any) fmt::print("\n{}", promises.Render());
  PrintCapacities(health);
}

Result<ExitCode> RunStatus(Globals& globals) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const Health health, AskHealth(*link));
  if (globals.json()) {
    PrintJson(Document(health, link->endpoint()));
  } else {
    PrintScreen(health, link->endpoint());
  }
  return health.troubles.empty() ? ExitCode::kDone : ExitCode::kUnhealthy;
}

}  // namespace

void AddStatus(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("status", "health in one screen; exit 7 when unhealthy");
  verb->footer("Example: osdctl --cluster /srv/weir status");
  verb->callback([&globals] { globals.action = RunStatus; });
}

}  // namespace weir::osdctl
