// osdctl release: take a promise back.

#include "common/wire/mds.pb.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"
#include "tools/osdctl/owner.h"
#include "tools/osdctl/user_part.h"

namespace weir::osdctl {
namespace {

struct ReleaseOptions {
  std::string name, user;
};

Result<ExitCode> RunRelease(Globals& globals, const ReleaseOptions& options) {
  const std::string& name = options.name;
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("class", name));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::ClassNameRequest request;
  request.set_name(name);
  if (!options.user.empty()) {
    WEIR_ASSIGN_OR_RETURN(const uint32_t uid, OwnerId(options.user, true));
    WEIR_ASSIGN_OR_RETURN(const wire::ClusterMap map, link->Map());
    const wire::ClassInfo* info = FindClass(map, name);
    if (info == nullptr) return NoSuchClass(name);
    WEIR_RETURN_IF_ERROR(CheckHasPart(*info, uid));
    request.set_user(uid);
  }
  wire::Empty done;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RELEASE_RESERVATION, request, &done));
  if (globals.json()) {
    Json json = {{"released", name}};
    if (request.has_user()) json["uid"] = request.user();
    PrintJson(json);
  }
  return ExitCode::kDone;
}

}  // namespace

void AddRelease(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand(
      "release", "take a reservation back, with users' parts of it; the class stays");
  auto options = std::make_shared<ReleaseOptions>();
  verb->add_option("class", options->name, "its name")->required()->type_name("C");
  verb->add_option("--user", options->user, "only what this user was promised of it")
      ->type_name("USER");
  verb->footer("Example: osdctl release gold");
  verb->callback([&globals, options] {
    globals.action = [options](Globals& g) { return RunRelease(g, *options); };
  });
}

}  // namespace weir::osdctl
