// osdctl osd ls | show | set: the OSDs and the boxes of their pipelines.

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "common/base/units.h"
#include "common/qos/qos_config.h"
#include "common/qos/qos_words.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/tiers.h"

namespace weir::osdctl {
namespace {

std::string DepthText(uint32_t depth) {
  return depth == 0 ? "auto" : std::to_string(depth);
}

Result<ExitCode> RunOsdLs(Globals& globals) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  if (globals.json()) {
    Json osds = Json::array();
    for (const auto& osd : map.osds()) osds.push_back(ToJson(map, osd));
    PrintJson({{"osds", osds}});
    return ExitCode::kDone;
  }
  cli::Table table({"OSD", "STATE", ">CAPACITY", ">USED", ">TOKEN RATE", ">PROMISED", "PROFILE",
                    "SURPLUS", "SHARING", "GATE", "DISPATCH", ">DEPTH", "ENDPOINT"});
  for (const auto& osd : map.osds()) {
    const auto& qos = osd.qos();
    table.AddRow({fmt::format("osd.{}", osd.id()), osd.up() ? "up" : "DOWN",
                  FormatSize(osd.capacity_bytes()), FormatSize(osd.used_bytes()),
                  RateOrDash(qos.token_rate()), FormatRate(PromisedOn(map, osd)), qos.profile(),
                  qos.surplus(), qos.sharing(), qos.gate(), qos.dispatch(), DepthText(qos.depth()),
                  osd.endpoint()});
  }
  fmt::print("{}", table.Render());
  return ExitCode::kDone;
}

Result<ExitCode> RunOsdShow(Globals& globals, const std::string& id_text) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(id_text));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  const wire::OsdInfo* osd = FindOsd(map, id);
  if (osd == nullptr) return NoSuchOsd(id);
  Json json = ToJson(map, *osd);
  wire::OsdStatsReply stats;
  if (osd->tiers_size() > 0 && osd->up()) {
    WEIR_ASSIGN_OR_RETURN(stats, link->Stats({*osd}, false).front());
    json["tiers"] = TiersDocument(map, stats);
    json["classes"] = AllocationDocument(map, stats);
  }
  if (globals.json()) {
    PrintJson(json);
    return ExitCode::kDone;
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "tiers" || key == "classes") continue;  // tables, below
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (key.ends_with("_bytes_per_s") && value.is_number()) {
      text = FormatRate(value.get<uint64_t>());
    } else if (key.ends_with("_bytes") && value.is_number()) {
      text = FormatSize(value.get<uint64_t>());
    } else if (key.ends_with("_us") && value.is_number()) {
      text = FormatDuration(std::chrono::microseconds(value.get<int64_t>()));
    } else if (value.is_null()) {
      text = "auto";
    }
    fmt::print("{:<28} {}\n", key, text);
  }
  if (stats.tiers_size() > 0) fmt::print("\n{}", TierTables(map, stats));
  return ExitCode::kDone;
}

struct SetOptions {
  std::string target, profile, surplus, sharing, gate, dispatch, cost, maximizer, depth;
  std::string token_rate, best_effort_min, iops_max, anticipation, service_estimate;
  std::string processor_pressure;
  std::string allocation, allocation_period, allocation_window, allocation_alarm;
};

// The words are checked here too, so that a slip is told apart from a silent cluster.
Status SetWords(const SetOptions& options, wire::SetOsdRequest* request) {
  if (!options.profile.empty()) {
    if (auto known = ApplyProfile(options.profile, {}); !known.ok()) return known.status();
    request->set_profile(options.profile);
  }
  if (!options.surplus.empty()) {
    if (auto known = ParseSurplus(options.surplus); !known.ok()) return known.status();
    request->set_surplus(options.surplus);
  }
  if (!options.sharing.empty()) {
    if (auto known = ParseSharing(options.sharing); !known.ok()) return known.status();
    request->set_sharing(options.sharing);
  }
  if (!options.gate.empty()) {
    if (auto known = ParseGate(options.gate); !known.ok()) return known.status();
    request->set_gate(options.gate);
  }
  if (!options.dispatch.empty()) {
    if (auto known = ParseDispatch(options.dispatch); !known.ok()) return known.status();
    request->set_dispatch(options.dispatch);
  }
  if (!options.cost.empty()) {
    if (auto known = ParseCost(options.cost); !known.ok()) return known.status();
    if (options.target != "all") {
      return {ErrorCode::kInvalid,
              "--cost holds for the whole cluster, since delays count it: osdctl osd set all "
              "--cost " +
                  options.cost};
    }
    request->set_cost(options.cost);
  }
  return Status::Ok();
}

Result<uint32_t> DepthValue(const std::string& text) {
  constexpr uint32_t kDeepest = 4096;
  if (text == "auto") return 0u;
  uint32_t depth = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (error != std::errc() || end != text.data() + text.size() || depth == 0 || depth > kDeepest) {
    return {ErrorCode::kInvalid, fmt::format("--depth '{}': 1 to {}, or auto", text, kDeepest)};
  }
  return depth;
}

Result<bool> SwitchValue(const std::string& option, const std::string& text) {
  if (text == "on" || text == "off") return text == "on";
  return {ErrorCode::kInvalid, fmt::format("{} '{}': on or off", option, text)};
}

Result<uint64_t> TimeOrAuto(const std::string& option, const std::string& text) {
  if (text == "auto") return uint64_t{0};
  WEIR_ASSIGN_OR_RETURN(const Duration time, cli::DurationValue(option, text));
  return static_cast<uint64_t>(time.count());
}

Result<uint32_t> PressureValue(const std::string& text) {
  if (text == "off") return SchedulerConfig::kAnyPressure;
  WEIR_ASSIGN_OR_RETURN(const double part, cli::PercentValue("--processor-pressure", text));
  const auto percent = static_cast<uint32_t>(std::lround(part * 100));
  if (percent > 0) return percent;
  return {ErrorCode::kInvalid, fmt::format("--processor-pressure '{}': 1% to 100%, or off", text)};
}

Status SetNumbers(const SetOptions& options, wire::SetOsdRequest* request) {
  if (!options.maximizer.empty()) {
    WEIR_ASSIGN_OR_RETURN(const bool on, SwitchValue("--maximizer", options.maximizer));
    request->set_maximizer(on);
  }
  if (!options.anticipation.empty()) {
    WEIR_ASSIGN_OR_RETURN(const bool on, SwitchValue("--anticipation", options.anticipation));
    request->set_anticipation(on);
  }
  if (!options.service_estimate.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t ns,
                          TimeOrAuto("--service-estimate", options.service_estimate));
    request->set_service_estimate_ns(ns);
  }
  if (!options.processor_pressure.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t percent, PressureValue(options.processor_pressure));
    request->set_processor_pressure(percent);
  }
  if (!options.depth.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t depth, DepthValue(options.depth));
    request->set_depth(depth);
  }
  if (!options.token_rate.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t rate, cli::RateValue("--token-rate", options.token_rate));
    request->set_token_rate(rate);
  }
  if (options.iops_max == "auto") request->set_iops_max(0);
  if (!options.iops_max.empty() && options.iops_max != "auto") {
    WEIR_ASSIGN_OR_RETURN(const uint64_t count,
                          cli::CountValue("--iops-max", options.iops_max, 1, 1'000'000'000));
    request->set_iops_max(count);
  }
  if (!options.best_effort_min.empty()) {
    WEIR_ASSIGN_OR_RETURN(
        const uint64_t rate,
        cli::RateValue("--best-effort-min", options.best_effort_min, cli::AtZero::kAllow));
    request->set_best_effort_min(rate);
  }
  return Status::Ok();
}

Status SetAllocation(const SetOptions& options, wire::SetOsdRequest* request) {
  if (!options.allocation.empty()) {
    if (auto known = ParseAllocation(options.allocation); !known.ok()) return known.status();
    request->set_allocation(options.allocation);
  }
  if (!options.allocation_period.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t ns,
                          TimeOrAuto("--allocation-period", options.allocation_period));
    request->set_allocation_period_ns(ns);
  }
  if (!options.allocation_window.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t ns,
                          TimeOrAuto("--allocation-window", options.allocation_window));
    request->set_allocation_window_ns(ns);
  }
  if (!options.allocation_alarm.empty()) {
    if (options.allocation_alarm != "on" && options.allocation_alarm != "off") {
      return {ErrorCode::kInvalid,
              fmt::format("--allocation-alarm '{}': on or off", options.allocation_alarm)};
    }
    request->set_allocation_alarm(options.allocation_alarm == "on");
  }
  return Status::Ok();
}

Result<ExitCode> RunSet(Globals& globals, const SetOptions& options) {
  wire::SetOsdRequest request;
  WEIR_RETURN_IF_ERROR(SetWords(options, &request));
  WEIR_RETURN_IF_ERROR(SetNumbers(options, &request));
  WEIR_RETURN_IF_ERROR(SetAllocation(options, &request));
  if (request.ByteSizeLong() == 0 && !request.has_iops_max()) {
    return {ErrorCode::kInvalid, "nothing to set: name a profile or a piece (see --help)"};
  }
  if (options.target != "all") {
    WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(options.target));
    request.add_osds(id);
  }
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap before, link->Map());
  for (const uint32_t id : request.osds()) {
    if (FindOsd(before, id) == nullptr) return NoSuchOsd(id);
  }
  wire::Empty done;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_SET_OSD, request, &done));
  if (!globals.json()) return ExitCode::kDone;
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  Json osds = Json::array();
  for (const auto& osd : map.osds()) {
    if (request.osds().empty() || request.osds(0) == osd.id()) osds.push_back(ToJson(map, osd));
  }
  PrintJson({{"osds", osds}});
  return ExitCode::kDone;
}

// "fifo|cscan|...".
std::string Either(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, "|"));
}

void AddSet(CLI::App* osd, Globals& globals) {
  auto* set = osd->add_subcommand("set", "choose a profile or single boxes, live");
  auto options = std::make_shared<SetOptions>();
  set->add_option("id", options->target, "an OSD, or all")->required()->type_name("ID|all");
  set->add_option("--profile", options->profile,
                  "sets every box; pieces named beside it override it")
      ->type_name(Either(ProfileWords()));
  set->add_option("--token-rate", options->token_rate, "global token rate G0 of the OSD")
      ->type_name("RATE");
  set->add_option("--best-effort-min", options->best_effort_min, "floor of class best-effort")
      ->type_name("RATE");
  set->add_option("--iops-max", options->iops_max,
                  "requests a second that may be promised (auto: one for 64KiB of the token rate)")
      ->type_name("N|auto");
  set->add_option("--maximizer", options->maximizer, "raise the root rate while it helps (strict)")
      ->type_name("on|off");
  set->add_option(
         "--anticipation", options->anticipation,
         "keep a disk idle for a reader who is about to ask again: near its latency alone, "
         "for less throughput (dispatch cvc, depth auto)")
      ->type_name("on|off");
  set->add_option(
         "--processor-pressure", options->processor_pressure,
         "part of the time in which somebody may wait for a processor while a class with a "
         "latency bound and little under way works: others are held to what that allows "
         "(10% by default; more where the bound leaves room; off: they are not held)")
      ->type_name("PERCENT|off");
  set->add_option(
         "--service-estimate", options->service_estimate,
         "what dispatch cvc takes a request to need of the disk (auto: what nine in ten needed "
         "lately); larger keeps more deadlines, smaller moves the head less")
      ->type_name("DURATION|auto");
  set->add_option("--gate", options->gate, "what surplus needs: root tokens, or a free slot")
      ->type_name(Either(GateWords()));
  set->add_option("--surplus", options->surplus, "who gets the rest")
      ->type_name(Either(SurplusWords()));
  set->add_option("--sharing", options->sharing, "what dsfq shares: this OSD, or the total")
      ->type_name(Either(SharingWords()));
  set->add_option("--dispatch", options->dispatch, "order on the disk")
      ->type_name(Either(DispatchWords()));
  set->add_option("--cost", options->cost, "unit of every account (only with all)")
      ->type_name(Either(CostWords()));
  set->add_option("--depth", options->depth, "requests on the disk at a time")->type_name("N|auto");
  set->add_option("--allocation", options->allocation,
                  "of an OSD with tiers: bottleneck-aware, dominant shares, or requests by weight")
      ->type_name(Either(AllocationWords()));
  set->add_option("--allocation-period", options->allocation_period, "computes it every so often")
      ->type_name("DURATION|auto");
  set->add_option("--allocation-window", options->allocation_window,
                  "from the hit ratios of so long (auto: a thousand requests, 60 s at most)")
      ->type_name("DURATION|auto");
  set->add_option("--allocation-alarm", options->allocation_alarm,
                  "and at once when a tier idles while another is full")
      ->type_name("on|off");
  set->footer(
      "Obeyed by every OSD that is up when the command returns.\n"
      "Example: osdctl osd set all --profile odis --token-rate 40MiB/s --maximizer off");
  set->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunSet(g, *options); };
  });
}

}  // namespace

void AddOsd(CLI::App& app, Globals& globals) {
  auto* osd = app.add_subcommand("osd", "the OSDs and their pipelines");
  osd->require_subcommand(1);
  osd->footer("Example: osdctl osd ls");
  auto* ls = osd->add_subcommand("ls", "all OSDs");
  ls->footer("Example: osdctl osd ls -o json");
  ls->callback([&globals] { globals.action = RunOsdLs; });
  auto* show = osd->add_subcommand("show", "everything about one OSD");
  auto id = std::make_shared<std::string>();
  show->add_option("id", *id, "the OSD")->required()->type_name("ID");
  show->footer("Example: osdctl osd show 0");
  show->callback(
      [&globals, id] { globals.action = [id](Globals& g) { return RunOsdShow(g, *id); }; });
  AddSet(osd, globals);
  AddScrub(osd, globals);
}

}  // namespace weir::osdctl
