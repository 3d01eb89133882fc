#include "tools/cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/nearest.h"
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

std::vector<std::string> VerbsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

// As they are typed, of this verb and those above it, which take them, too.
std::vector<std::string> OptionsOf(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::string WithNearest(const std::string& what, const std::string& nearest) {
  return nearest.empty() ? what : what + ", the nearest is '" + nearest + "'";
}

std::string Listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

// What is wrong with what was typed; empty: what CLI11 says of it is all.
std::string WhatIsMistyped(const CLI::App& app) {
  // CLI11 misses a verb where somebody mistyped one.
  const CLI::App* deepest = &app;
  std::string words;
  while (!deepest->get_subcommands().empty()) {
    deepest = deepest->get_subcommands().front();
    words += deepest->get_name() + " ";
  }
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty() && unknown.front().starts_with("--")) {
    const std::string option = unknown.front().substr(0, unknown.front().find('='));
    return WithNearest("there is no option '" + option + "'",
                       NearestOf(option, OptionsOf(deepest)));
  }
  if (deepest->get_require_subcommand_min() == 0) return {};
  const std::vector<std::string> verbs = VerbsOf(*deepest);
  if (unknown.empty()) {
    return "a verb is missing" +
           (words.empty() ? "" : " behind '" + words.substr(0, words.size() - 1) + "'") + ": " +
           Listed(verbs);
  }
  const std::string none = "there is no verb '" + words + unknown.front() + "'";
  const std::string nearest = NearestOf(unknown.front(), verbs);
  if (nearest.empty()) return none + ", there are " + Listed(verbs);
  return WithNearest(none, words + nearest);
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
    const std::string mistyped = WhatIsMistyped(app);
    const std::string why = mistyped.empty() ? error.what() : mistyped;
    return Fail(app.get_name(), Status(ErrorCode::kInvalid, why + " (see --help)"));
  }
  if (const std::string name = EmptyOption(app); !name.empty()) {
    return Fail(app.get_name(), Status(ErrorCode::kInvalid, name + ": its value is empty"));
  }
  return std::nullopt;
}

}  // namespace weir::cli
