// osdctl stat: counters since start or reset, per class and OSD.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "common/base/units.h"
#include "tools/cli/program.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/osdctl/mds_load.h"
#include "tools/osdctl/stat_document.h"

namespace weir::osdctl {
namespace {

struct StatOptions {
  std::string class_name, osd;
  bool reset = false;
};

Result<std::vector<wire::OsdInfo>> ChooseOsds(const wire::ClusterMap& map,
                                              const std::string& text) {
  std::vector<wire::OsdInfo> osds(map.osds().begin(), map.osds().end());
  if (text.empty()) return osds;
  WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(text));
  const wire::OsdInfo* osd = FindOsd(map, id);
  if (osd == nullptr) return NoSuchOsd(id);
  return std::vector<wire::OsdInfo>{*osd};
}

void PrintTable(const wire::ClusterMap& map, const std::vector<wire::OsdStatsReply>& all,
                const std::optional<uint32_t>& only) {
  for (const auto& stats : all) {
    fmt::print("osd.{}: token rate {} (base {}), device {}, counters of the last {:.0f} s\n",
               stats.osd_id(), FormatRate(stats.token_rate()), FormatRate(stats.base_token_rate()),
               FormatRate(stats.device_bytes_per_s()), stats.window_s());
    fmt::print("  background {} since start, at least {}; past the pipeline {}\n",
               FormatSize(stats.background_bytes()), FormatRate(stats.background_floor()),
               FormatSize(stats.unmetered_bytes()));
    if (stats.pace() > 0) {
      fmt::print("  others than those with a latency bound are held to {}: processors are short\n",
                 FormatRate(stats.pace()));
    }
    if (stats.disk().samples() > 0) {
      fmt::print("  the disk gives {}, give or take {} ({} s of full load){}\n",
                 FormatRate(stats.disk().bytes_per_s()), FormatRate(stats.disk().give_or_take()),
                 stats.disk().samples(), stats.disk().slow() ? ": SLOWER THAN PROMISED" : "");
    }
    cli::Table table({"  CLASS", ">SERVED", ">OPS", ">QUEUED", ">GUARANTEED", ">SURPLUS", ">P50 us",
                      ">P90 us", ">P99 us", ">P99.9 us", ">MISSED", ">BROKEN s"});
    for (const auto& row : RowsOf(map, stats, only)) {
      const bool idle = row.served_ops() == 0 && row.queued_ops() == 0;
      if (idle && !only.has_value()) continue;
      const auto& latency = row.latency();
      table.AddRow({"  " + ClassName(map, row.class_id()), FormatSize(row.served_bytes()),
                    std::to_string(row.served_ops()), std::to_string(row.queued_ops()),
                    FormatSize(row.guaranteed_bytes()), FormatSize(row.surplus_bytes()),
                    std::to_string(latency.p50_us()), std::to_string(latency.p90_us()),
                    std::to_string(latency.p99_us()), std::to_string(latency.p999_us()),
                    std::to_string(row.deadline_misses()),
                    std::to_string(row.violation_seconds())});
    }
    fmt::print("{}", table.Render());
  }
}

void Print(const Globals& globals, const wire::ClusterMap& map,
           const std::vector<wire::OsdStatsReply>& all, const std::vector<uint32_t>& silent,
           const wire::ClassLoadReply& load, const std::optional<uint32_t>& only) {
  if (!globals.json()) {
    PrintTable(map, all, only);
    fmt::print("mds: operations since it started\n{}", LoadTable(map, load, only).Render());
    return;
  }
  Json osds = Json::array();
  double window = 0;
  for (const auto& stats : all) {
    osds.push_back(StatDocument(map, stats, only));
    window = std::max(window, stats.window_s());
  }
  PrintJson({{"osds", osds},
             {"window_s", window},
             {"unreachable_osds", silent},
             {"mds", LoadDocument(map, load, only)}});
}

Result<ExitCode> RunStat(Globals& globals, const StatOptions& options) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  std::optional<uint32_t> only;
  if (!options.class_name.empty()) {
    const wire::ClassInfo* info = FindClass(map, options.class_name);
    if (info == nullptr) return NoSuchClass(options.class_name);
    only = info->id();
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<wire::OsdInfo> osds, ChooseOsds(map, options.osd));
  std::vector<wire::OsdStatsReply> all;
  std::vector<uint32_t> silent;
  Status first_silence;
  const auto answers = link->Stats(osds, options.reset);
  for (size_t i = 0; i < osds.size(); ++i) {
    if (answers[i].ok()) {
      all.push_back(*answers[i]);
      continue;
    }
    silent.push_back(osds[i].id());
    if (first_silence.ok()) first_silence = answers[i].status();
  }
  if (all.empty() && !silent.empty()) return first_silence;
  wire::ClassLoadReply load;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_CLASS_LOAD, wire::Empty(), &load));
  Print(globals, map, all, silent, load, only);
  if (silent.empty()) return ExitCode::kDone;
  cli::Say("osdctl", fmt::format("{} of {} OSDs did not answer: {}", silent.size(), osds.size(),
                                 first_silence.message()));
  return ExitCode::kPartlyDone;
}

}  // namespace

void AddStat(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("stat", "counters since start or reset, per class and OSD");
  auto options = std::make_shared<StatOptions>();
  verb->add_option("class", options->class_name, "only this class")->type_name("C");
  verb->add_option("--osd", options->osd, "only this OSD")->type_name("ID");
  verb->add_flag("--reset", options->reset, "start the counters anew after showing them");
  verb->footer("Example: osdctl stat gold -o json");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunStat(g, *options); };
  });
}

}  // namespace weir::osdctl
