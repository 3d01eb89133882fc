// osdctl completion: shell completion, made from the verbs and options as declared.

#include <fmt/format.h>

#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

// "verb" -> the words that may follow it, for every verb below `app`.
void Collect(const CLI::App* app, const std::string& path,
             std::vector<std::pair<std::string, std::string>>* table) {
  std::string words;
  for (const CLI::App* verb : app->get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_group().empty()) continue;
    words += verb->get_name() + " ";
    Collect(verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), table);
  }
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    for (const std::string& name : option->get_snames()) words += "-" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  table->emplace_back(path, words);
}

constexpr char kFunction[] = R"(_osdctl() {{
  local path="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "${{path:+$path }}$word" in
{known}    esac
  done
  local words=""
  case "$path" in
{words}  esac
  COMPREPLY=($(compgen -W "$words --cluster --output --help" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -F _osdctl osdctl
)";

std::string Script(const CLI::App& app, bool zsh) {
  std::vector<std::pair<std::string, std::string>> table;
  Collect(&app, "", &table);
  std::string known;
  std::string words;
  for (const auto& [path, list] : table) {
    if (!path.empty()) known += fmt::format("      '{}') path='{}' ;;\n", path, path);
    words += fmt::format("    '{}') words='{}' ;;\n", path, list);
  }
  const std::string head = zsh ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  return head + fmt::format(kFunction, fmt::arg("known", known), fmt::arg("words", words));
}

}  // namespace

void AddCompletion(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("completion", "print shell completion");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "which")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->type_name("bash|zsh");
  verb->footer("Example: osdctl completion bash > /etc/bash_completion.d/osdctl");
  verb->callback([&app, &globals, shell] {
    globals.action = [&app, shell](Globals&) -> Result<ExitCode> {
      fmt::print("{}", Script(app, *shell == "zsh"));
      return ExitCode::kDone;
    };
  });
}

}  // namespace weir::osdctl
