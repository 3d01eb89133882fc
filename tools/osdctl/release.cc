// osdctl release: take a promise back.

#include "common/wire/mds.pb.h"
#include "tools/cli/values.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

Result<ExitCode> RunRelease(Globals& globals, const std::string& name) {
  WEIR_RETURN_IF_ERROR(cli::CheckOldName("class", name));
  WEIR_ASSIGN_OR_RETURN(ClusterLink * link, globals.Link());
  wire::ClassNameRequest request;
  request.set_name(name);
  wire::Empty done;
  WEIR_RETURN_IF_ERROR(link->Call(wire::MDS_RELEASE_RESERVATION, request, &done));
  if (globals.json()) PrintJson({{"released", name}});
  return ExitCode::kDone;
}

}  // namespace

void AddRelease(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("release", "take a reservation back; the class stays");
  auto name = std::make_shared<std::string>();
  verb->add_option("class", *name, "its name")->required()->type_name("C");
  verb->footer("Example: osdctl release gold");
  verb->callback(
      [&globals, name] { globals.action = [name](Globals& g) { return RunRelease(g, *name); }; });
}

}  // namespace weir::osdctl
