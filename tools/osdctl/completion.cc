// osdctl completion: what a shell offers at TAB, for all programs.

#include <fmt/format.h>

#include "tools/completions/completions.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

void AddCompletion(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("completion", "print shell completion of all programs");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "which")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->type_name("bash|zsh");
  verb->footer("Example: source <(osdctl completion bash)");
  verb->callback([&globals, shell] {
    globals.action = [shell](Globals&) -> Result<ExitCode> {
      fmt::print("{}", *shell == "zsh" ? completions::kZsh : completions::kBash);
      return ExitCode::kDone;
    };
  });
}

}  // namespace weir::osdctl
