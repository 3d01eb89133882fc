// ProgramConfig: one table of settings from which a program's flags, variables and file all follow.
//
// `memory` in [osd] of the file is --memory and WEIR_OSD_MEMORY; --config names the file,
// --check-config prints what holds and where each value comes from, and starts nothing. A daemon
// with a file reads it again on SIGHUP.
// Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/config/config.h"

namespace CLI {
class App;
}

namespace weir::cli {

class ProgramConfig {
 public:
  struct Options {
    std::string program;            // `weir-osd`
    std::string table;              // `osd`: of all settings below
    std::vector<Setting> schema;    // one of them is `osd.log`
    std::string default_file = {};  // read where it exists and --config names none; empty: none
    // What no setting shows alone and needs no start, as that something is missing. Any error is of
    // the settings.
    std::function<Status(const Config&)> check;
  };
  explicit ProgramConfig(Options options);
  ProgramConfig(const ProgramConfig&) = delete;
  ProgramConfig& operator=(const ProgramConfig&) = delete;

  // --config and --check-config; a flag for each setting. The app is parsed while this lives.
  void AddFileFlags(CLI::App& app);
  void AddSettingFlags(CLI::App& app);
  // What the command line says in other words than those flags.
  void Give(const std::string& name, GivenSetting given);

  // Once the command line is parsed. Says what is wrong and gives the code to exit with, or 0 after
  // --check-config; none: go on, config() holds. `check` is then the program's to call.
  std::optional<int> Load();
  [[nodiscard]] const Config& config() const { return *config_; }
  [[nodiscard]] Status Check() const { return options_.check(*config_); }
  [[nodiscard]] const std::string& file() const { return sources_.file; }  // empty: none

  // Reads the file again: the level of the log changes, other differences are logged as to come
  // with a restart. A file with an error is logged and changes nothing. Requires: Load, a file.
  void Reload();

 private:
  void TakeDefaultFile();
  Result<Config> Read() const;
  void SetLog(const Config& now);

  const Options options_;
  ConfigSources sources_;
  bool check_only_ = false;
  std::optional<Config> config_;
};

// Where this machine's files are: /etc/weirfs, or what WEIR_CONFIG_DIR names.
constexpr const char* kConfigDirectory = "/etc/weirfs";
std::string ConfigDirectory();

// A `check` for a setting that is a level of the log.
Status CheckLogLevel(const std::string& text);

}  // namespace weir::cli
