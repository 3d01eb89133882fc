#include "tools/cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/cli/exit_code.h"

namespace weir::cli {

namespace {

// A variable that a script forgot to set is no value: `--size "$SIZE"`.
std::string EmptyOption(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& values = option->results();
    const bool empty = std::find(values.begin(), values.end(), "") != values.end();
    if (empty && !option->get_lnames().empty()) return "--" + option->get_lnames().front();
  }
  for (const CLI::App* verb : app.get_subcommands()) {
    if (std::string name = EmptyOption(*verb); !name.empty()) return name;
  }
  return {};
}

}  // namespace

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
  if (const std::string name = EmptyOption(app); !name.empty()) {
    return Fail(app.get_name(), Status(ErrorCode::kInvalid, name + ": its value is empty"));
  }
  return std::nullopt;
}

}  // namespace weir::cli
