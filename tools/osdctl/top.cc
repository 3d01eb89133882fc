// osdctl top: a live screen of what each class was promised, asks for and gets, or of who uses it.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "common/base/units.h"
#include "tools/cli/program.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/osdctl/flow_document.h"
#include "tools/osdctl/name_load.h"
#include "tools/osdctl/stat_document.h"

namespace weir::osdctl {
namespace {

struct TopOptions {
  std::string interval = "1s";
  int rounds = 0;  // 0: until interrupted
  bool flows = false;
  std::string of_class;  // whose flows; empty: of all
};

struct Look {
  wire::ClusterMap map;
  MountNames mounts;
  StatsByOsd stats;
  NameLoad names;  // where flows are wanted
  TimePoint at;
};

volatile sig_atomic_t interrupted = 0;

// Waits, unless a signal ends the show.
void Pause(Duration length) {
  const TimePoint end = SystemClock::Get().Now() + length;
  while (interrupted == 0) {
    const Duration left = end - SystemClock::Get().Now();
    if (left <= Duration::zero()) return;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    poll(nullptr, 0, static_cast<int>(ms));
  }
}

Result<Look> TakeLook(ClusterLink& link, bool flows) {
  Look look;
  if (flows) {
    wire::StatusReply status;
    WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_STATUS, wire::Empty(), &status));
    look.map = status.map();
    look.mounts = MountNamesOf(status);
    look.names = AskNameLoad(link);
  } else {
    WEIR_ASSIGN_OR_RETURN(look.map, link.Map());
  }
  std::vector<wire::OsdInfo> up;
  for (const auto& osd : look.map.osds()) {
    if (osd.up()) up.push_back(osd);
  }
  for (auto& answer : link.Stats(up, false, flows)) {
    if (answer.ok()) look.stats[answer->osd_id()] = *answer;
  }
  look.at = SystemClock::Get().Now();
  return look;
}

std::string BrokenText(const ClassRate& rate) {
  if (rate.new_violations == 0) return std::to_string(rate.violation_seconds);
  return fmt::format("{} (+{})", rate.violation_seconds, rate.new_violations);
}

std::string Screen(const Look& look, const std::vector<ClassRate>& rates) {
  uint64_t token_rate = 0;
  uint64_t device = 0;
  for (const auto& [id, stats] : look.stats) {
    token_rate += stats.token_rate();
    device += stats.device_bytes_per_s();
  }
  std::string text = fmt::format("{} of {} OSDs answer, epoch {}, token rate {}, devices {}\n",
                                 look.stats.size(), look.map.osds_size(), look.map.epoch(),
                                 FormatRate(token_rate), FormatRate(device));
  cli::Table table({"CLASS", ">PROMISED", ">DEMAND", ">SERVED", ">SHARE", ">QUEUE", ">P50 us",
                    ">P99 us", ">BROKEN s"});
  for (const ClassRate& rate : rates) {
    const bool idle = rate.promised == 0 && rate.demand + rate.served < 1 && rate.queued_ops == 0;
    if (idle) continue;
    table.AddRow({rate.name, RateOrDash(rate.promised),
                  FormatRate(static_cast<uint64_t>(rate.demand)),
                  FormatRate(static_cast<uint64_t>(rate.served)),
                  fmt::format("{:.0f}%", 100 * rate.share), std::to_string(rate.queued_ops),
                  std::to_string(rate.p50_us), std::to_string(rate.p99_us), BrokenText(rate)});
  }
  return text + table.Render();
}

Json Sample(const std::vector<ClassRate>& rates, double seconds) {
  Json classes = Json::array();
  for (const ClassRate& rate : rates) {
    classes.push_back({{"class", rate.name},
                       {"id", rate.id},
                       {"promised_bytes_per_s", rate.promised},
                       {"demand_bytes_per_s", static_cast<uint64_t>(rate.demand)},
                       {"served_bytes_per_s", static_cast<uint64_t>(rate.served)},
                       {"share", rate.share},
                       {"queued_ops", rate.queued_ops},
                       {"latency_us", {{"p50", rate.p50_us}, {"p99", rate.p99_us}}},
                       {"violation_seconds", rate.violation_seconds},
                       {"new_violation_seconds", rate.new_violations}});
  }
  return {{"interval_s", seconds}, {"classes", classes}};
}

struct Shown {
  Json sample;
  std::string screen;
};

Shown ShowRates(const Look& before, const Look& now) {
  const double seconds = ToSeconds(now.at - before.at);
  const auto rates = RatesBetween(now.map, before.stats, now.stats, seconds);
  return {Sample(rates, seconds), Screen(now, rates)};
}

Result<Shown> ShowFlows(const Look& now, const std::string& of_class) {
  std::optional<uint32_t> only;
  if (!of_class.empty()) {
    const wire::ClassInfo* info = FindClass(now.map, of_class);
    if (info == nullptr) return NoSuchClass(of_class);
    only = info->id();
  }
  const std::vector<ClassFlows> all = FlowsOf(now.map, now.stats, only);
  Json classes = Json::array();
  for (const ClassFlows& one : all) classes.push_back(FlowsDocument(one, now.mounts));
  const std::vector<ClassFlows> names = NameFlowsOf(now.map, now.names.load, only);
  Json name_classes = Json::array();
  for (const ClassFlows& one : names) name_classes.push_back(NameFlowsDocument(one, now.mounts));
  const std::string& missing = now.names.missing;
  const Json mds = {{"missing", missing.empty() ? Json(nullptr) : Json(missing)},
                    {"classes", name_classes}};
  return Shown{{{"classes", classes}, {"mds", mds}},
               FlowsScreen(all, now.mounts) + "\n" + NameFlowsScreen(names, now.mounts, missing)};
}

Result<ExitCode> RunTop(Globals& globals, const TopOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const Duration interval,
                        cli::DurationValue("--interval", options.interval));
  if (!options.flows && !options.of_class.empty()) {
    return {ErrorCode::kInvalid,
            fmt::format("one class is shown with --flows, as in top --flows {}", options.of_class)};
  }
  if (options.rounds < 0) {
    return {ErrorCode::kInvalid, fmt::format("-n {}: at least 1", options.rounds)};
  }
  if (globals.json() && options.rounds == 0) {
    return {ErrorCode::kInvalid, "-o json is one document: say how many samples, as in -n 5"};
  }
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(Look before, TakeLook(*link, options.flows));
  signal(SIGINT, [](int) { interrupted = 1; });
  const bool live = !globals.json() && isatty(STDOUT_FILENO) != 0;
  Json samples = Json::array();
  for (int round = 0; options.rounds == 0 || round < options.rounds; ++round) {
    // OSDs know the flows of the last seconds: the first look says it already.
    Look now = before;
    if (!options.flows || round > 0) {
      Pause(interval);
      if (interrupted != 0) break;
      WEIR_ASSIGN_OR_RETURN(now, TakeLook(*link, options.flows));
    }
    Shown shown;
    if (options.flows) {
      WEIR_ASSIGN_OR_RETURN(shown, ShowFlows(now, options.of_class));
    } else {
      shown = ShowRates(before, now);
    }
    if (globals.json()) {
      samples.push_back(std::move(shown.sample));
    } else {
      fmt::print("{}{}{}", live ? "\x1b[H\x1b[2J" : "", shown.screen, live ? "" : "\n");
      cli::FlushStdout();
    }
    before = std::move(now);
  }
  if (globals.json()) PrintJson({{"samples", samples}});
  return ExitCode::kDone;
}

}  // namespace

void AddTop(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("top", "live: promised, demanded, served, latency, per class");
  auto options = std::make_shared<TopOptions>();
  verb->add_option("--interval", options->interval, "between looks (1s; a bare number is seconds)")
      ->type_name("DURATION");
  verb->add_option("-n", options->rounds, "end after that many looks")->type_name("N");
  verb->add_flag("--flows", options->flows,
                 "instead: who uses the classes, or one: users or cgroups, and their programs");
  verb->add_option("class", options->of_class, "with --flows: that one only")->type_name("C");
  verb->footer(
      "PROMISED by reservations and as virtual disks (--throughput, else --peak), on all OSDs;\n"
      "latencies are the worst OSD's of the last 5 to 10 s; BROKEN: seconds in which a promise\n"
      "was not kept since the counters' start (+ how many between the looks).\n"
      "With --flows: of the last 5 to 10 s, at most 32 users and 32 programs of a class, those "
      "with\n"
      "most device time; SHARE of the class's device time; light: waits for each answer, "
      "mostly.\n"
      "Below, those who ask for most operations on names, at the MDS: how many WAIT for their turn "
      "now,\n"
      "and for how long (mean).\n\n"
      "Example: osdctl top --interval 2s\n         osdctl top -n 1 -o json\n"
      "         osdctl top --flows gold");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunTop(g, *options); };
  });
}

}  // namespace weir::osdctl
