// osdctl why: where the time of a class goes now, and whom to blame.

#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/placement/times_wire.h"
#include "common/wire/mds.pb.h"
#include "tools/cli/mounts.h"
#include "tools/osdctl/name_load.h"
#include "tools/osdctl/stat_document.h"
#include "tools/osdctl/why_document.h"

namespace weir::osdctl {
namespace {

constexpr char kEffectiveClass[] = "qos.effective_class";

// On a mount the mount knows best: its own class counts, and its rules.
Result<std::string> ReasonOnMount(const std::string& path) {
  char value[4096];
  const ssize_t length = lgetxattr(path.c_str(), kEffectiveClass, value, sizeof(value));
  if (length >= 0) return std::string(value, static_cast<size_t>(length));
  return Status::FromErrno(errno, fmt::format("'{}'", path));
}

Result<std::string> ReasonInside(ClusterLink& link, const std::string& path) {
  wire::RuleTestRequest request;
  request.set_path(path);
  request.mutable_who()->set_uid(getuid());
  request.mutable_who()->set_gid(getgid());
  wire::EffectiveClass answer;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_RULE_TEST, request, &answer));
  return answer.reason();
}

// "gold (from /db)" begins with the name of the class.
std::string ClassIn(const std::string& reason) {
  return reason.substr(0, reason.find(' '));
}

// What else is known of it, if the OSDs answer.
Status AddStats(ClusterLink& link, WhyAnswer* answer) {
  wire::StatusReply status;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_STATUS, wire::Empty(), &status));
  std::vector<wire::OsdInfo> up;
  for (const auto& osd : status.map().osds()) {
    if (osd.up()) up.push_back(osd);
  }
  StatsByOsd stats;
  for (auto& one : link.Stats(up, false, true)) {
    if (one.ok()) stats[one->osd_id()] = std::move(*one);
  }
  if (WaitsForItsOwn(answer->verdict)) {
    for (ClassFlows& one : FlowsOf(status.map(), stats, answer->info->id())) {
      answer->flows = std::move(one.flows);
    }
  }
  answer->names = MountNamesOf(status);
  answer->osds = std::move(stats);
  return Status::Ok();
}

Result<ExitCode> RunWhy(Globals& globals, const std::string& what) {
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  WhyAnswer answer;
  answer.info = FindClass(map, what);
  if (answer.info == nullptr) {
    const cli::PlaceInWeirfs place = cli::WhereInWeirfs(what);
    Result<std::string> reason =
        place.on_mount ? ReasonOnMount(what) : ReasonInside(*link, place.inside);
    if (reason.code() == ErrorCode::kNotFound && what.find('/') == std::string::npos) {
      return Status(
          ErrorCode::kNotFound,
          fmt::format("there is no class '{0}' (osdctl class ls), nor a file '{0}'", what));
    }
    if (!reason.ok()) return reason.status();
    answer.path = what;
    answer.reason = *reason;
    answer.info = FindClass(map, ClassIn(*reason));
    if (answer.info == nullptr) {
      return NoSuchClass(ClassIn(*reason))
          .Annotate(fmt::format("'{}' is a file of another cluster", what));
    }
  }
  wire::ClassNameRequest request;
  request.set_name(answer.info->name());
  wire::WhyReply reply;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_WHY, request, &reply));
  Lately lately = weir::FromWire(reply);
  answer.verdict = Judge(lately, ClassId(answer.info->id()));
  answer.mounts = std::move(lately.mounts);
  if (answer.verdict.culprit == Culprit::kNeighbour) {
    answer.neighbour = ClassName(map, answer.verdict.neighbour.value);
  }
  NameLoad names = AskNameLoad(*link);
  answer.at_mds = NameFlowsOf(map, names.load, std::nullopt);
  answer.names_missing = std::move(names.missing);
  if (WaitsForItsOwn(answer.verdict) || WaitsForNames(answer) || answer.info->latency_ns() > 0) {
    WEIR_RETURN_IF_ERROR(AddStats(*link, &answer));
  }
  if (globals.json()) {
    PrintJson(WhyDocument(answer));
  } else {
    fmt::print("{}", WhyScreen(answer));
  }
  return ExitCode::kDone;
}

}  // namespace

void AddWhy(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("why", "where the time of a class goes now, and whom to blame");
  auto what = std::make_shared<std::string>();
  verb->add_option("what", *what,
                   "a class, a path on a mount here, or one from the root of the file system")
      ->required()
      ->type_name("PATH|C");
  verb->footer(
      "Of the last ten seconds. To blame may be its limit, a neighbour, the disk, the network, or\n"
      "the application, which has nothing under way most of the time. Of operations on names: how\n"
      "many wait at the MDS, and who has its turns where they wait more than data does.\n\n"
      "Example: osdctl why gold\n"
      "         osdctl why /mnt/weir/db/table");
  verb->callback(
      [&globals, what] { globals.action = [what](Globals& g) { return RunWhy(g, *what); }; });
}

}  // namespace weir::osdctl
