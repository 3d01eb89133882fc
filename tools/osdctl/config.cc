// osdctl config: what the programs of this machine are told by the files of their packages.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tools/cli/process.h"
#include "tools/cli/program.h"
#include "tools/cli/program_config.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {
namespace {

// Empty: no file of that name is read by any program.
std::string ProgramOf(const std::string& name) {
  if (name == "mds") return "weir-mds";
  if (name == "mount") return "weirfs";
  return name.starts_with("osd-") && name.size() > 4 ? "weir-osd" : "";
}

// Beside this one, else where PATH has it.
std::string PlaceOf(const std::string& program) {
  const std::string beside = cli::OwnDirectory() + "/" + program;
  return access(beside.c_str(), X_OK) == 0 ? beside : program;
}

// Names of all files there that a program reads.
Result<std::vector<std::string>> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".toml" && !ProgramOf(path.stem()).empty()) {
      names.push_back(path.stem());
    }
  }
  if (error) return Status::FromErrno(error.value(), "cannot read '" + directory + "'");
  if (names.empty()) {
    return Status(ErrorCode::kNotFound,
                  "there is no mds.toml, osd-NAME.toml or mount.toml in " + directory);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What the program itself says of it.
Result<ExitCode> ShowFile(const std::string& path, const std::string& program) {
  constexpr int kCannotStart = 127;
  fmt::print("# {} of {}\n", path, program);
  cli::FlushStdout();
  const int code = cli::RunAttached({PlaceOf(program), "--check-config", "--config", path});
  if (code != kCannotStart) return static_cast<ExitCode>(code);
  return Status(ErrorCode::kNotFound, program + " is neither beside osdctl nor in PATH");
}

// The code is that of the first that is wrong; all are shown.
Result<ExitCode> Show(const std::string& name) {
  const std::string directory = cli::ConfigDirectory();
  std::vector<std::string> names = {name};
  if (name.empty()) {
    WEIR_ASSIGN_OR_RETURN(names, NamesIn(directory));
  } else if (ProgramOf(name).empty()) {
    return Status(ErrorCode::kInvalid,
                  fmt::format("'{}' is none of mds, osd-NAME and mount", name));
  }
  ExitCode code = ExitCode::kDone;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) fmt::print("\n");
    WEIR_ASSIGN_OR_RETURN(const ExitCode shown,
                          ShowFile(directory + "/" + names[i] + ".toml", ProgramOf(names[i])));
    if (code == ExitCode::kDone) code = shown;
  }
  return code;
}

}  // namespace

void AddConfig(CLI::App& app, Globals& globals) {
  auto* config = app.add_subcommand("config", "settings of the programs on this machine");
  config->require_subcommand(1);
  auto* show = config->add_subcommand(
      "show", fmt::format("print what holds by each file in {} and where it comes from; exit 2: "
                          "something is wrong",
                          cli::kConfigDirectory));
  auto name = std::make_shared<std::string>();
  show->add_option("name", *name, "one of them (default: all)")->type_name("mds|osd-NAME|mount");
  show->footer(
      "Another directory: WEIR_CONFIG_DIR. Variables of this shell (WEIR_OSD_MEMORY) count, those "
      "of "
      "services do not.\n\nExample: osdctl config show osd-sdb");
  show->callback([&globals, name] { globals.action = [name](Globals&) { return Show(*name); }; });
}

}  // namespace weir::osdctl
