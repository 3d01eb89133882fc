// Verbs of later versions, so that naming one says what is the matter.

#include "tools/cli/values.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

void AddLaterVerbs(CLI::App& app, Globals& globals) {
  for (const char* name : {"why", "verify"}) {
    auto* verb = app.add_subcommand(name, "")->group("");
    verb->fallthrough(false);
    verb->allow_extras();
    verb->callback([&globals, name] {
      globals.action = [name](Globals&) -> Result<ExitCode> {
        return cli::NotBuilt(std::string("osdctl ") + name);
      };
    });
  }
}

}  // namespace weir::osdctl
