// osdctl reserve: promise a class a bandwidth.

#include <fmt/format.h>

#include "common/base/units.h"
#include "common/qos/qos_config.h"
#include "common/wire/mds.pb.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

struct ReserveOptions {
  std::string name, bandwidth, duration, scope, admission;
  bool dry_run = false;
  std::vector<LaterOption> later;
};

Status FillRequest(const ReserveOptions& options, wire::ReserveRequest* request) {
  WEIR_RETURN_IF_ERROR(RefuseLater(options.later));
  if (!options.admission.empty() && options.admission != "additive") {
    return cli::NotBuilt(fmt::format("--admission {}", options.admission));
  }
  WEIR_RETURN_IF_ERROR(cli::CheckName("class", options.name));
  request->set_name(options.name);
  WEIR_ASSIGN_OR_RETURN(const uint64_t rate, cli::RateValue("--bandwidth", options.bandwidth));
  request->set_bytes_per_s(rate);
  if (!options.duration.empty()) {
    WEIR_ASSIGN_OR_RETURN(const Duration length, cli::DurationValue("--for", options.duration));
    request->set_duration_ns(static_cast<uint64_t>(length.count()));
  }
  if (!options.scope.empty()) {
    if (auto known = ParseScope(options.scope); !known.ok()) return known.status();
    request->set_scope(options.scope);
  }
  request->set_dry_run(options.dry_run);
  return Status::Ok();
}

Result<ExitCode> RunReserve(Globals& globals, const ReserveOptions& options) {
  wire::ReserveRequest request;
  WEIR_RETURN_IF_ERROR(FillRequest(options, &request));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::ReserveReply reply;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RESERVE, request, &reply));
  if (globals.json()) {
    Json json = ToJson(reply.class_info());
    json["booked_per_osd_bytes_per_s"] = reply.booked_per_osd();
    json["dry_run"] = options.dry_run;
    PrintJson(json);
  } else if (options.dry_run) {
    fmt::print("{} for '{}' would be admitted, booking {} on each OSD\n",
               FormatRate(request.bytes_per_s()), options.name, FormatRate(reply.booked_per_osd()));
  }
  return ExitCode::kDone;
}

}  // namespace

void AddReserve(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("reserve", "promise a class a bandwidth; exit 4 when refused");
  auto options = std::make_shared<ReserveOptions>();
  verb->add_option("class", options->name, "its name")->required()->type_name("C");
  verb->add_option("--bandwidth", options->bandwidth, "the floor")->required()->type_name("RATE");
  verb->add_option("--for", options->duration, "how long (default: until released)")
      ->type_name("DURATION");
  verb->add_option("--scope", options->scope,
                   "cluster: over all OSDs together (default); osd: on each")
      ->type_name("cluster|osd");
  verb->add_option("--admission", options->admission, "additive")->type_name("TEST");
  verb->add_flag("--dry-run", options->dry_run, "only say whether it would be admitted");
  options->later.push_back(AddLater(verb, "--iops"));
  verb->footer("Example: osdctl reserve gold --bandwidth 200MiB/s --for 8h");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunReserve(g, *options); };
  });
}

}  // namespace weir::osdctl
