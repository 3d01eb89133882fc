// osdctl: the operator's command. One file per verb; this one holds the global options.

#include <csignal>
#include <cstdio>

#include "tools/osdctl/command.h"

namespace {

using weir::ErrorCode;
using weir::Result;
using weir::Status;
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
  AddCompletion(app, globals);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("osdctl: see and set what a WeirFS cluster promises and serves", "osdctl");
  Globals globals;
  app.fallthrough();
  app.require_subcommand(1);
  app.footer(kFooter);
  app.add_option("--cluster", globals.cluster, "directory or endpoint of the cluster")
      ->envname("WEIR_CLUSTER")
      ->type_name("DIR|ENDPOINT");
  app.add_option("-o,--output", globals.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORMAT");
  AddVerbs(app, globals);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);  // of the deepest verb on the command line
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining(true);
    const bool no_verb = app.get_subcommands().empty() && !unknown.empty();
    const std::string why = no_verb ? "there is no verb '" + unknown.front() + "'" : error.what();
    return weir::cli::Fail("osdctl", Status(ErrorCode::kInvalid, why + " (see --help)"));
  }
  const Result<ExitCode> code = globals.action(globals);
  if (!code.ok()) return weir::cli::Fail("osdctl", code.status());
  return static_cast<int>(*code);
}
