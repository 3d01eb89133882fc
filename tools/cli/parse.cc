#include "tools/cli/parse.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "tools/cli/exit_code.h"

namespace weir::cli {

std::optional<int> Parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);  // of the deepest verb on the command line
    return 0;
  } catch (const CLI::ParseError& error) {
    return Fail(app.get_name(),
                Status(ErrorCode::kInvalid, std::string(error.what()) + " (see --help)"));
  }
  return std::nullopt;
}

}  // namespace weir::cli
