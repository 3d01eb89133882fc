// osdctl class ls | show | create | set | rm: who there is, and what weight and ceiling each has.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/placement/class_promise.h"
#include "common/qos/flow_kind.h"
#include "common/qos/qos_config.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/table.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/mds_load.h"
#include "tools/osdctl/owner.h"

namespace weir::osdctl {
namespace {

constexpr uint64_t kSmallestCapacity = 4096;

std::string EndText(const wire::ClassInfo& info) {
  if (!info.has_reservation()) return "-";
  if (!info.reservation().has_ends_wall_ns()) return "released";
  const time_t seconds = static_cast<time_t>(info.reservation().ends_wall_ns() / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

std::string OwnersText(const wire::ClassInfo& info) {
  std::string text;
  for (const uint32_t uid : info.users())
    text += fmt::format("{}uid {}", text.empty() ? "" : ",", uid);
  for (const uint32_t gid : info.groups())
    text += fmt::format("{}gid {}", text.empty() ? "" : ",", gid);
  return text.empty() ? "everybody" : text;
}

std::string PercentText(double part) {
  return fmt::format("{:g}%", part * 100);
}

// "20ms@95%"
std::string BoundText(const wire::ClassInfo& info) {
  if (info.latency_ns() == 0) return "-";
  return FormatDuration(Duration(static_cast<int64_t>(info.latency_ns()))) + "@" +
         PercentText(info.latency_part());
}

// "throughput 25% 20MiB/s", "rent-a-disk 40MiB/s"
std::string DiskText(const wire::ClassInfo& info) {
  if (info.type().empty() || info.type() == ToText(ClassType::kBestEffort)) return "-";
  std::string text = info.type() + " " +
                     (info.peak_bytes_per_s() > 0 ? FormatRate(info.peak_bytes_per_s())
                                                  : PercentText(info.peak()));
  if (info.throughput_bytes_per_s() > 0) text += " " + FormatRate(info.throughput_bytes_per_s());
  return text;
}

std::string CapacityText(const wire::ClassInfo& info) {
  return info.capacity_bytes() == 0 ? "-" : FormatSize(info.capacity_bytes());
}

std::string NamesLimitText(const wire::ClassInfo& info) {
  return info.limit_names_per_s() == 0 ? "max" : std::to_string(info.limit_names_per_s());
}

std::string IopsText(const wire::ClassInfo& info) {
  return info.reservation().iops() == 0 ? "-" : std::to_string(info.reservation().iops());
}

void PrintClasses(const std::vector<const wire::ClassInfo*>& classes) {
  cli::Table table({"CLASS", ">ID", ">WEIGHT", ">MIN", ">RESERVATION", ">IOPS", "SCOPE", "UNTIL",
                    ">LIMIT", ">NAMES/S", ">LATENCY", "DISK", ">CAPACITY", "FLOW", "TAGGED BY"});
  for (const auto* info : classes) {
    table.AddRow({info->name(), std::to_string(info->id()), fmt::format("{:g}", info->weight()),
                  fmt::format("{:g}", info->min_weight()),
                  RateOrDash(info->reservation().bytes_per_s()), IopsText(*info),
                  info->has_reservation() ? info->reservation().scope() : "-", EndText(*info),
                  LimitText(*info), NamesLimitText(*info), BoundText(*info), DiskText(*info),
                  CapacityText(*info), FlowText(*info), OwnersText(*info)});
  }
  fmt::print("{}", table.Render());
}

Result<ExitCode> RunLs(Globals& globals) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  Json classes = Json::array();
  std::vector<const wire::ClassInfo*> rows;
  for (const auto& info : map.classes()) {
    classes.push_back(ToJson(info));
    rows.push_back(&info);
  }
  if (globals.json()) {
    PrintJson({{"classes", classes}});
  } else {
    PrintClasses(rows);
  }
  return ExitCode::kDone;
}

void PrintUsers(const wire::ClassInfo& info) {
  for (const auto& user : info.reservation().users()) {
    fmt::print("uid {} is promised {} of it\n", user.uid(), FormatRate(user.bytes_per_s()));
  }
}

// What a virtual disk is like on each OSD: its share of it, and that of the token rate.
Json PeaksDocument(const wire::ClusterMap& map, const wire::ClassInfo& info) {
  Json peaks = Json::array();
  for (const PeakOnOsd& peak : PeaksOf(map, info)) {
    peaks.push_back(
        {{"osd", peak.osd_id}, {"percent", peak.share * 100}, {"bytes_per_s", peak.bytes_per_s}});
  }
  return peaks;
}

void PrintPeaks(const Json& peaks) {
  for (const Json& one : peaks) {
    fmt::print("its peak on osd.{} is {}, {:.4g}% of the disk\n", one["osd"].get<uint32_t>(),
               FormatRate(one["bytes_per_s"].get<uint64_t>()), one["percent"].get<double>());
  }
}

void PrintOne(const Globals& globals, const wire::ClassInfo& info) {
  if (globals.json()) return PrintJson(ToJson(info));
  PrintClasses({&info});
  PrintUsers(info);
}

Result<ExitCode> RunShow(Globals& globals, const std::string& name) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("class", name));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  const wire::ClassInfo* info = FindClass(map, name);
  if (info == nullptr) return NoSuchClass(name);
  wire::ClassLoadReply load;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_CLASS_LOAD, wire::Empty(), &load));
  const uint64_t held = HeldBy(load, info->id());
  if (globals.json()) {
    Json json = ToJson(*info);
    json["held_bytes"] = held;
    json["peaks"] = PeaksDocument(map, *info);
    PrintJson(json);
    return ExitCode::kDone;
  }
  PrintClasses({info});
  PrintUsers(*info);
  PrintPeaks(PeaksDocument(map, *info));
  fmt::print("its files hold {}{}\n", FormatSize(held),
             info->capacity_bytes() == 0 ? "" : " of " + FormatSize(info->capacity_bytes()));
  return ExitCode::kDone;
}

struct ClassOptions {
  std::string name, weight, min_weight, limit, limit_names;
  std::string type, peak, throughput, tolerance, latency, max_pending, admission;
  std::string capacity, flow;
  std::vector<std::string> users, groups;
  bool dry_run = false;
};

Status FillDisk(const ClassOptions& options, wire::SetClassRequest* request) {
  if (!options.type.empty()) {
    if (auto known = ParseClassType(options.type); !known.ok()) return known.status();
    request->set_type(options.type);
  }
  if (!options.peak.empty()) {
    const bool is_rate = options.peak.find('B') != std::string::npos;  // 40MiB/s
    if (is_rate) {
      WEIR_ASSIGN_OR_RETURN(const uint64_t rate, cli::RateValue("--peak", options.peak));
      request->set_peak_bytes_per_s(rate);
    } else {
      WEIR_ASSIGN_OR_RETURN(const double peak, cli::PercentValue("--peak", options.peak));
      request->set_peak(peak);
    }
  }
  if (!options.throughput.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t rate, cli::RateValue("--throughput", options.throughput));
    request->set_throughput_bytes_per_s(rate);
  }
  if (!options.tolerance.empty()) {
    WEIR_ASSIGN_OR_RETURN(const double part, cli::PercentValue("--tolerance", options.tolerance));
    request->set_tolerance(part);
  }
  return Status::Ok();
}

Status FillBound(const ClassOptions& options, wire::SetClassRequest* request) {
  if (options.latency == "none") {
    request->set_latency_ns(0);
  } else if (!options.latency.empty()) {
    WEIR_ASSIGN_OR_RETURN(const cli::LatencyBound value,
                          cli::LatencyValue("--latency", options.latency));
    request->set_latency_ns(static_cast<uint64_t>(value.bound.count()));
    request->set_latency_part(value.part);
  }
  if (!options.max_pending.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t count,
                          cli::CountValue("--max-pending", options.max_pending, 0, 100'000));
    request->set_max_pending(static_cast<uint32_t>(count));
  }
  if (!options.admission.empty()) {
    if (auto known = ParseAdmission(options.admission); !known.ok()) return known.status();
    request->set_admission(options.admission);
  }
  return Status::Ok();
}

Status FillRequest(const ClassOptions& options, wire::SetClassRequest* request) {
  request->set_name(options.name);
  request->set_dry_run(options.dry_run);
  if (!options.weight.empty()) {
    WEIR_ASSIGN_OR_RETURN(const double weight, cli::WeightValue("--weight", options.weight));
    request->set_weight(weight);
  }
  if (!options.min_weight.empty()) {
    WEIR_ASSIGN_OR_RETURN(const double weight,
                          cli::WeightValue("--min-weight", options.min_weight));
    request->set_min_weight(weight);
  }
  if (request->has_weight() && request->has_min_weight() &&
      request->min_weight() > request->weight()) {
    return {ErrorCode::kInvalid, fmt::format("--min-weight {} is above --weight {}",
                                             options.min_weight, options.weight)};
  }
  if (!options.limit.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t limit, cli::LimitValue("--limit", options.limit));
    request->set_limit_bytes_per_s(limit);
  }
  if (options.limit_names == "max") {
    request->set_limit_names_per_s(0);
  } else if (!options.limit_names.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t limit,
                          cli::CountValue("--limit-names", options.limit_names, 1, 1'000'000'000));
    request->set_limit_names_per_s(limit);
  }
  if (options.capacity == "max") {
    request->set_capacity_bytes(UINT64_MAX);
  } else if (!options.capacity.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t bytes,
                          cli::SizeValue("--capacity", options.capacity, kSmallestCapacity));
    request->set_capacity_bytes(bytes);
  }
  if (!options.flow.empty()) {
    if (auto known = ParseFlowKind(options.flow); !known.ok()) return known.status();
    request->set_flow(options.flow);
  }
  WEIR_RETURN_IF_ERROR(FillDisk(options, request));
  WEIR_RETURN_IF_ERROR(FillBound(options, request));
  for (const std::string& user : options.users) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t uid, OwnerId(user, true));
    request->add_users(uid);
  }
  for (const std::string& name : options.groups) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t gid, OwnerId(name, false));
    request->add_groups(gid);
  }
  return Status::Ok();
}

std::string BoundText(const wire::SetClassRequest& request) {
  return FormatDuration(Duration(static_cast<int64_t>(request.latency_ns()))) + "@" +
         PercentText(request.latency_part());
}

// What not even an idle disk does is not promised. Disks that were not measured yet may do it.
Status CheckAlone(ClusterLink& link, const wire::SetClassRequest& request) {
  if (request.latency_ns() == 0) return Status::Ok();
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link.Map());
  std::vector<wire::OsdInfo> up;
  for (const auto& osd : map.osds()) {
    if (osd.up()) up.push_back(osd);
  }
  std::vector<std::pair<uint32_t, uint64_t>> slow;  // with what they do alone, in microseconds
  for (const auto& stats : link.Stats(up, false)) {
    if (!stats.ok() || request.latency_ns() >= 1000 * stats->alone_p99_us()) continue;
    slow.emplace_back(stats->osd_id(), stats->alone_p99_us());
  }
  if (slow.empty()) return Status::Ok();
  const auto [osd, alone_us] = *std::min_element(
      slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string reason = fmt::format(
      "cannot promise {0} to '{1}' on osd.{2}: of small reads that had its disk to themselves one "
      "in "
      "a hundred took {3} or more (osdctl profile {2} measures anew)",
      BoundText(request), request.name(), osd, FormatDuration(std::chrono::microseconds(alone_us)));
  if (slow.size() == up.size()) return {ErrorCode::kRefused, reason};
  fmt::print(stderr, "osdctl: warning: {}\n", reason);
  return Status::Ok();
}

Result<ExitCode> RunChange(Globals& globals, const ClassOptions& options, uint32_t method) {
  const bool is_new = method == wire::MDS_CLASS_CREATE;
  WEIR_RETURN_IF_ERROR(is_new ? cli::CheckName("class", options.name)
                              : cli::CheckOldName("class", options.name));
  wire::SetClassRequest request;
  WEIR_RETURN_IF_ERROR(FillRequest(options, &request));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_RETURN_IF_ERROR(CheckAlone(*link, request));
  wire::ClassInfo info;
  WEIR_RETURN_IF_ERROR(link->Call(method, request, &info));
  if (globals.json() || options.dry_run) PrintOne(globals, info);
  if (!globals.json() && options.dry_run && info.booked_bytes_per_s() > 0) {
    fmt::print("would be admitted, booking {} of an OSD's token rate\n",
               FormatRate(info.booked_bytes_per_s()));
  }
  return ExitCode::kDone;
}

Result<ExitCode> RunRm(Globals& globals, const std::string& name) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("class", name));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::ClassNameRequest request;
  request.set_name(name);
  wire::Empty done;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_CLASS_REMOVE, request, &done));
  if (globals.json()) PrintJson({{"removed", name}});
  return ExitCode::kDone;
}

void AddContract(CLI::App* verb, ClassOptions* options) {
  verb->add_option(
          "--latency", options->latency,
          "bound that a part of the requests keeps (95%); none lifts it; a loose one costs "
          "others less than a tight one")
      ->type_name("DUR[@PERCENT]|none");
  verb->add_option("--max-pending", options->max_pending,
                   "requests beside the newest that the bound counts with (16)")
      ->type_name("N");
  verb->add_option("--admission", options->admission,
                   "how the bound is weighed: its worst case (additive), or what OSDs measure")
      ->type_name("additive|measured");
  verb->add_option("--type", options->type, "of virtual disk")
      ->type_name("best-effort|rent-a-disk|latency|throughput");
  verb->add_option("--peak", options->peak,
                   "what a virtual disk is like: a share of each disk, or the bandwidth of a disk "
                   "of its own, which is as large a share as that is of the OSD's token rate")
      ->type_name("PERCENT|RATE");
  verb->add_option("--throughput", options->throughput, "average of --type throughput")
      ->type_name("RATE");
  verb->add_option("--tolerance", options->tolerance,
                   "part of it that may be lent to latency disks in need (5%)")
      ->type_name("PERCENT");
}

void AddChange(CLI::App* parent, Globals& globals, const std::string& name, uint32_t method) {
  const bool create = method == wire::MDS_CLASS_CREATE;
  auto* verb = parent->add_subcommand(name, create ? "make a class" : "change a class, live");
  auto options = std::make_shared<ClassOptions>();
  verb->add_option("class", options->name, "its name")->required()->type_name("C");
  verb->add_option("--weight", options->weight, "share of what nobody reserved (1)")
      ->type_name("W");
  verb->add_option("--min-weight", options->min_weight,
                   "smallest share on one OSD under --sharing hybrid (0.1 x the weight)")
      ->type_name("W");
  verb->add_option(
          "--limit", options->limit,
          "ceiling over all OSDs together, on each of them while its reservation has --scope osd; "
          "max lifts it")
      ->type_name("RATE|max");
  verb->add_option("--limit-names", options->limit_names,
                   "operations on names a second (lookups, creates, listings ...) over all mounts; "
                   "max lifts it")
      ->type_name("N|max");
  verb->add_option("--capacity", options->capacity,
                   "bytes that its files may hold, holes included; max lifts it")
      ->type_name("SIZE|max");
  verb->add_option("--flow", options->flow,
                   "between whom it is fair: users (uid and mount) and the programs of each "
                   "(user), cgroups and the programs of each, programs (opener), or nobody: "
                   "requests in order of arrival (none)")
      ->type_name("user|cgroup|opener|none");
  verb->add_option("--user", options->users, "who may tag with it (default: everybody)")
      ->type_name("U");
  verb->add_option("--group", options->groups, "members may tag with it")->type_name("G");
  AddContract(verb, options.get());
  verb->add_flag("--dry-run", options->dry_run, "show what would be, change nothing");
  verb->footer(create ? "Example: osdctl class create gold --weight 2 --latency 20ms@95%"
                      : "Example: osdctl class set gold --weight 4 --limit max");
  verb->callback([&globals, options, method] {
    globals.action = [options, method](Globals& g) { return RunChange(g, *options, method); };
  });
}

constexpr NamedThing kClass = {"class", "C", "gold"};

}  // namespace

void AddClass(CLI::App& app, Globals& globals) {
  auto* parent = app.add_subcommand("class", "the classes: weights, ceilings, who may use them");
  parent->require_subcommand(1);
  parent->footer("Example: osdctl class create gold --weight 2");
  auto* ls = parent->add_subcommand("ls", "all classes");
  ls->footer("Example: osdctl class ls");
  ls->callback([&globals] { globals.action = RunLs; });
  AddNamedVerb(parent, globals, kClass, "show", "one class", RunShow);
  AddChange(parent, globals, "create", wire::MDS_CLASS_CREATE);
  AddChange(parent, globals, "set", wire::MDS_CLASS_SET);
  AddNamedVerb(parent, globals, kClass, "rm",
               "remove a class; files tagged with it go to best-effort", RunRm);
}

}  // namespace weir::osdctl
