// osdctl: the operator's command. One file per verb; this one holds the global options.

#include "tools/cli/parse.h"
#include "tools/cli/program.h"
#include "tools/cli/version.h"
#include "tools/osdctl/command.h"

namespace {

using weir::Result;
using weir::osdctl::ExitCode;
using weir::osdctl::Globals;

constexpr char kFooter[] =
    "A cluster is named by its directory (what --data or --dir was) or by an endpoint.\n"
    "Exit codes: 0 done, 1 failed, 2 bad usage, 3 partly done, 4 refused by admission, 5 not "
    "found,\n6 no contact, 7 unhealthy.\n\n"
    "Example:\n"
    "  export WEIR_CLUSTER=/srv/weir\n"
    "  osdctl class create gold --weight 2\n"
    "  osdctl reserve gold --bandwidth 200MiB/s --for 8h\n"
    "  osdctl top";

void AddVerbs(CLI::App& app, Globals& globals) {
  using namespace weir::osdctl;
  AddStatus(app, globals);
  AddOsd(app, globals);
  AddProfile(app, globals);
  AddClass(app, globals);
  AddReserve(app, globals);
  AddRelease(app, globals);
  AddRule(app, globals);
  AddStat(app, globals);
  AddTop(app, globals);
  AddWhy(app, globals);
  AddVerify(app, globals);
  AddPool(app, globals);
  AddVersion(app, globals);
  AddBundle(app, globals);
  AddConfig(app, globals);
  AddCompletion(app, globals);
}

int Run(int argc, char** argv) {
  weir::cli::SetThisBuild();
  CLI::App app("osdctl: see and set what a WeirFS cluster promises and serves", "osdctl");
  Globals globals;
  app.fallthrough();
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", weir::cli::VersionText("osdctl"));
  app.add_option("--cluster", globals.cluster, "directory or endpoint of the cluster")
      ->envname("WEIR_CLUSTER")
      ->type_name("DIR|ENDPOINT");
  app.add_option("-o,--output", globals.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORMAT");
  AddVerbs(app, globals);
  if (const auto ended = weir::cli::Parse(app, argc, argv)) return *ended;
  const Result<ExitCode> code = globals.action(globals);
  if (!code.ok()) return weir::cli::Fail("osdctl", code.status());
  return static_cast<int>(*code);
}

}  // namespace

int main(int argc, char** argv) {
  return weir::cli::RunProgram("osdctl", [=] { return Run(argc, argv); });
}
