// osdctl profile: measure a disk and propose the conservative global token rate.

#include <fmt/format.h>

#include "common/base/units.h"
#include "common/qos/profile_pattern.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

constexpr Duration kProfileTimeout = std::chrono::seconds(120);

struct ProfileOptions {
  std::string id, pattern = "mixed";
  bool apply = false;
};

Result<ExitCode> RunProfile(Globals& globals, const ProfileOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t id, cli::OsdIdValue(options.id));
  WEIR_ASSIGN_OR_RETURN(const ProfilePattern pattern, ParseProfilePattern(options.pattern));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
  const wire::OsdInfo* osd = FindOsd(map, id);
  if (osd == nullptr) return NoSuchOsd(id);
  wire::OsdProfileRequest asked;
  asked.set_write_percent(pattern.write_percent);
  asked.mutable_sizes()->Assign(pattern.sizes.begin(), pattern.sizes.end());
  asked.set_sequential_percent(pattern.sequential_percent);
  asked.set_depth(pattern.depth);
  wire::OsdProfileReply measured;
  WEIR_RETURN_IF_ERROR(link->CallOsd(*osd, wire::OSD_PROFILE, asked, &measured, kProfileTimeout));
  if (options.apply) {
    wire::SetOsdRequest request;
    request.add_osds(id);
    request.set_token_rate(measured.proposed_token_rate());
    wire::Empty done;
    WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_SET_OSD, request, &done));
  }
  if (globals.json()) {
    PrintJson({{"id", id},
               {"pattern", options.pattern},
               {"mean_bytes_per_s", measured.mean_bytes_per_s()},
               {"proposed_token_rate_bytes_per_s", measured.proposed_token_rate()},
               {"token_rate_bytes_per_s",
                options.apply ? measured.proposed_token_rate() : osd->qos().token_rate()},
               {"applied", options.apply}});
    return ExitCode::kDone;
  }
  fmt::print("osd.{} sustains {} on average ({}); conservative token rate: {}\n", id,
             FormatRate(measured.mean_bytes_per_s()), options.pattern,
             FormatRate(measured.proposed_token_rate()));
  fmt::print("{}\n", options.apply
                         ? "applied"
                         : fmt::format("not applied; it has {} (osdctl profile {} --apply)",
                                       FormatRate(osd->qos().token_rate()), id));
  return ExitCode::kDone;
}

}  // namespace

void AddProfile(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("profile", "measure a disk, propose its global token rate");
  auto options = std::make_shared<ProfileOptions>();
  verb->add_option("id", options->id, "the OSD")->required()->type_name("ID");
  verb->add_flag("--apply", options->apply, "set what was proposed");
  verb->add_option("--pattern", options->pattern,
                   "the expected workload: mixed (default), read or write[:SIZE[+SIZE..]]"
                   "[,writes=PERCENT][,sequential=PERCENT][,depth=N]")
      ->type_name("P");
  verb->footer(
      "Takes some seconds. Writes are made as the OSD makes them, flushed, into free space.\n"
      "mixed is 50 % writes of 512, 64 and 4 KiB, random, 16 at a time.\n"
      "Example: osdctl profile 0 --pattern mixed:64KiB+4KiB,writes=30,sequential=50,depth=32 "
      "--apply");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunProfile(g, *options); };
  });
}

}  // namespace weir::osdctl
