// osdctl status: health in one screen.

#include <fmt/format.h>

#include "common/base/units.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/table.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/mds_load.h"
#include "tools/osdctl/stat_document.h"

namespace weir::osdctl {
namespace {

struct Health {
  wire::StatusReply reply;
  std::vector<Result<wire::OsdStatsReply>> stats;  // in the order of the map's OSDs
  wire::ClassLoadReply load;
  std::vector<std::string> troubles;
};

std::vector<std::string> TroublesOf(const wire::OsdInfo& osd,
                                    const Result<wire::OsdStatsReply>& stats) {
  std::vector<std::string> troubles;
  if (!osd.up()) {
    troubles.push_back(fmt::format("osd.{} is down (last seen at {})", osd.id(), osd.endpoint()));
  } else if (!stats.ok()) {
    troubles.push_back(stats.status().message());
  } else if (stats->checksum_errors() > 0) {
    troubles.push_back(fmt::format("osd.{} found {} damaged blocks: see its log for the objects",
                                   osd.id(), stats->checksum_errors()));
  }
  if (stats.ok() && stats->disk().slow()) {
    troubles.push_back(fmt::format(
        "osd.{} is slower than promised: it gives {}, its token rate is {} (osdctl profile {} "
        "--apply, or another disk)",
        osd.id(), FormatRate(stats->disk().bytes_per_s()), FormatRate(stats->base_token_rate()),
        osd.id()));
  }
  return troubles;
}

Result<Health> AskHealth(ClusterLink& link) {
  Health health;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_STATUS, wire::Empty(), &health.reply));
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_CLASS_LOAD, wire::Empty(), &health.load));
  const auto& osds = health.reply.map().osds();
  std::vector<wire::OsdInfo> up;
  for (const auto& osd : osds) {
    if (osd.up()) up.push_back(osd);
  }
  auto answers = link.Stats(up, false);
  size_t next = 0;
  for (const auto& osd : osds) {
    health.stats.push_back(
        osd.up() ? std::move(answers[next++])
                 : Result<wire::OsdStatsReply>(Status(ErrorCode::kUnreachable, "it is down")));
    for (std::string& text : TroublesOf(osd, health.stats.back())) {
      health.troubles.push_back(std::move(text));
    }
  }
  if (osds.empty()) health.troubles.emplace_back("there is no OSD: nothing can be stored yet");
  for (const std::string& warning : health.reply.warnings()) health.troubles.push_back(warning);
  return health;
}

// By class, in seconds of all OSDs since their counters' start.
using Violations = std::map<uint32_t, uint64_t>;

Violations ViolationsOf(const Health& health) {
  Violations violations;
  for (const auto& stats : health.stats) {
    if (!stats.ok()) continue;
    for (const auto& row : stats->classes()) {
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
  return {{"health", health.troubles.empty() ? "ok" : "unhealthy"},
          {"troubles", health.troubles},
          {"cluster_uuid", map.cluster_uuid()},
          {"epoch", map.epoch()},
          {"mds", {{"endpoint", endpoint}}},
          {"sessions", health.reply.sessions()},
          {"inodes", health.reply.inodes()},
          {"pending_purges", health.reply.pending_purges()},
          {"violation_seconds", Total(violations)},
          {"violations", broken},
          {"osds", osds},
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

void PrintScreen(const Health& health, const std::string& endpoint) {
  const wire::ClusterMap& map = health.reply.map();
  fmt::print("health   {}\n", health.troubles.empty() ? "ok" : "UNHEALTHY");
  for (const std::string& trouble : health.troubles) fmt::print("         ! {}\n", trouble);
  fmt::print("cluster  {}  epoch {}\n", map.cluster_uuid(), map.epoch());
  fmt::print("mds      {}  {} sessions, {} inodes, {} purges pending\n", endpoint,
             health.reply.sessions(), health.reply.inodes(), health.reply.pending_purges());
  fmt::print("{}\n\n", ViolationsText(map, ViolationsOf(health)));
  cli::Table osds(
      {"OSD", "STATE", ">CAPACITY", ">USED", ">TOKEN RATE", ">PROMISED", ">NOW", "PROFILE"});
  for (int i = 0; i < map.osds_size(); ++i) {
    const auto& osd = map.osds(i);
    const auto& stats = health.stats[static_cast<size_t>(i)];
    osds.AddRow({fmt::format("osd.{}", osd.id()), osd.up() ? "up" : "DOWN",
                 FormatSize(osd.capacity_bytes()), FormatSize(osd.used_bytes()),
                 RateOrDash(osd.qos().token_rate()), FormatRate(PromisedOn(map, osd)),
                 stats.ok() ? FormatRate(stats->device_bytes_per_s()) : "-", osd.qos().profile()});
  }
  fmt::print("{}", osds.Render());
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
