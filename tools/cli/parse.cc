#include "tools/cli/parse.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/cli/exit_code.h"

namespace weir::cli {

std::optional<int> Parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);  // of the deepest verb on the command line
    return 0;
  } catch (const CLI::CallForVersion& call) {
    fputs((std::string(call.what()) + "\n").c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    // CLI11 misses a verb where somebody mistyped one.
    const std::vector<std::string> unknown = app.remaining(true);
    const bool no_verb =
        app.get_require_subcommand_min() > 0 && app.get_subcommands().empty() && !unknown.empty();
    const std::string why = no_verb ? "there is no verb '" + unknown.front() + "'" : error.what();
    return Fail(app.get_name(), Status(ErrorCode::kInvalid, why + " (see --help)"));
  }
  return std::nullopt;
}

}  // namespace weir::cli
