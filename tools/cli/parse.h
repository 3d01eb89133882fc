// What every program does with its command line first.
#pragma once

#include <optional>

namespace CLI {
class App;
}

namespace weir::cli {

// Parses; help and what set_version_flag has go to stdout, bad usage to stderr, under the app's
// name; of a verb or option that does not exist it says which is the nearest. The exit code when
// the program ends with that, nothing when it goes on.
std::optional<int> Parse(CLI::App& app, int argc, char** argv);

}  // namespace weir::cli
