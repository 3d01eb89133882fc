// osdctl reserve: promise a class a bandwidth, requests a second, or both; a user a part of that.

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "common/base/units.h"
#include "common/qos/qos_config.h"
#include "common/wire/mds.pb.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/owner.h"
#include "tools/osdctl/user_part.h"

namespace weir::osdctl {
namespace {

struct ReserveOptions {
  std::optional<std::string> bandwidth;
  std::string name, iops, duration, scope, admission, leeway, user;
  bool dry_run = false;
};

// "auto", or how many n-ths each of n OSDs is booked.
Status FillLeeway(const std::string& text, wire::ReserveRequest* request) {
  if (text == "auto") {
    request->set_choose_leeway(true);
    return Status::Ok();
  }
  double leeway = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), leeway);
  if (error != std::errc() || end != text.data() + text.size() || !(leeway >= 1)) {
    return {ErrorCode::kInvalid, "--leeway " + text + ": auto, or a number from 1 on"};
  }
  request->set_leeway(leeway);
  return Status::Ok();
}

// A part of what the class is promised: all but the bandwidth is the class's.
Status FillUser(const ReserveOptions& options, wire::ReserveRequest* request) {
  const bool more = !options.iops.empty() || !options.duration.empty() || !options.scope.empty() ||
                    !options.admission.empty() || !options.leeway.empty();
  if (more || !options.bandwidth) {
    return {ErrorCode::kInvalid,
            "--user takes --bandwidth and nothing else: duration, scope, leeway and admission are "
            "those of the class"};
  }
  WEIR_ASSIGN_OR_RETURN(const uint32_t uid, OwnerId(options.user, true));
  request->set_user(uid);
  return Status::Ok();
}

Status FillRequest(const ReserveOptions& options, wire::ReserveRequest* request) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("class", options.name));
  request->set_name(options.name);
  if (!options.user.empty()) WEIR_RETURN_IF_ERROR(FillUser(options, request));
  if (!options.bandwidth && options.iops.empty()) {
    return {ErrorCode::kInvalid, "say what to reserve: --bandwidth RATE, --iops N, or both"};
  }
  if (options.bandwidth) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t rate, cli::RateValue("--bandwidth", *options.bandwidth));
    request->set_bytes_per_s(rate);
  }
  if (!options.iops.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint64_t iops,
                          cli::CountValue("--iops", options.iops, 1, 1'000'000'000));
    request->set_iops(iops);
  }
  if (!options.admission.empty()) {
    if (auto known = ParseAdmission(options.admission); !known.ok()) return known.status();
    request->set_admission(options.admission);
  }
  if (!options.duration.empty()) {
    WEIR_ASSIGN_OR_RETURN(const Duration length, cli::DurationValue("--for", options.duration));
    request->set_duration_ns(static_cast<uint64_t>(length.count()));
  }
  if (!options.scope.empty()) {
    if (auto known = ParseScope(options.scope); !known.ok()) return known.status();
    request->set_scope(options.scope);
  }
  if (!options.leeway.empty()) WEIR_RETURN_IF_ERROR(FillLeeway(options.leeway, request));
  request->set_dry_run(options.dry_run);
  return Status::Ok();
}

// By a dry run: an MDS that does not know of users must not be asked for the change.
Status CheckUserIsSeen(ClusterLink& link, wire::ReserveRequest request) {
  request.set_dry_run(true);
  wire::ReserveReply reply;
  WEIR_RETURN_IF_ERROR(link.Call(wire::MDS_RESERVE, request, &reply));
  return CheckPartIsSeen(reply.class_info(), request.user(), request.bytes_per_s());
}

void PrintLeeway(const wire::ReserveReply& reply) {
  const double leeway = reply.class_info().reservation().leeway();
  fmt::print("leeway {:g}: {}\n", leeway > 0 ? leeway : kLeeway,
             reply.leeway_periods() == 0
                 ? "the default, too little was seen of the class"
                 : fmt::format("chosen by how unevenly it used the OSDs in {} periods of 2 s",
                               reply.leeway_periods()));
}

Result<ExitCode> RunReserve(Globals& globals, const ReserveOptions& options) {
  wire::ReserveRequest request;
  WEIR_RETURN_IF_ERROR(FillRequest(options, &request));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  if (request.has_user()) WEIR_RETURN_IF_ERROR(CheckUserIsSeen(*link, request));
  wire::ReserveReply reply;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RESERVE, request, &reply));
  if (globals.json()) {
    Json json = ToJson(reply.class_info());
    json["dry_run"] = options.dry_run;
    if (request.choose_leeway()) json["leeway_periods"] = reply.leeway_periods();
    PrintJson(json);
    return ExitCode::kDone;
  }
  if (request.choose_leeway()) PrintLeeway(reply);
  if (options.dry_run && request.has_user()) {
    fmt::print("{} of it for uid {} would be admitted\n", FormatRate(request.bytes_per_s()),
               request.user());
  } else if (options.dry_run) {
    const std::string what = request.bytes_per_s() > 0 ? FormatRate(request.bytes_per_s())
                                                       : options.iops + " requests/s";
    fmt::print("{} for '{}' would be admitted, booking {} on each OSD\n", what, options.name,
               FormatRate(reply.class_info().booked_bytes_per_s()));
  }
  return ExitCode::kDone;
}

}  // namespace

void AddReserve(CLI::App& app, Globals& globals) {
  auto* verb =
      app.add_subcommand("reserve", "promise a class a bandwidth or requests; exit 4 when refused");
  auto options = std::make_shared<ReserveOptions>();
  verb->add_option("class", options->name, "its name")->required()->type_name("C");
  verb->add_option("--bandwidth", options->bandwidth, "the floor")->type_name("RATE");
  verb->add_option("--iops", options->iops, "floor in requests a second, beside or instead")
      ->type_name("N");
  verb->add_option("--for", options->duration, "how long (default: until released)")
      ->type_name("DURATION");
  verb->add_option("--scope", options->scope,
                   "cluster: over all OSDs together (default); osd: on each")
      ->type_name("cluster|osd");
  verb->add_option("--admission", options->admission,
                   "weighed in full (additive, the default), or with what the OSDs measure")
      ->type_name("additive|measured");
  verb->add_option("--leeway", options->leeway,
                   "of a total over n OSDs each is booked so many n-ths (default: 1.5); auto: as "
                   "the class used them in the last half hour")
      ->type_name("F|auto");
  verb->add_option("--user", options->user,
                   "a part of what the class is promised, for one user of it")
      ->type_name("USER");
  verb->add_flag("--dry-run", options->dry_run, "only say whether it would be admitted");
  verb->footer(
      "Example: osdctl reserve gold --bandwidth 200MiB/s --for 8h\n"
      "         osdctl reserve gold --user alice --bandwidth 50MiB/s    (of the 200)");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunReserve(g, *options); };
  });
}

}  // namespace weir::osdctl
