#include "tools/cli/program_config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/base/log.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/program.h"

namespace weir::cli {
namespace {

constexpr int kBadUsage = static_cast<int>(ExitCode::kBadUsage);

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Only those of ours.
std::vector<std::string> NamesOfVariables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("WEIR_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  std::sort(names.begin(), names.end());  // the same error each time
  return names;
}

// The errno of a look at it. 0 is also a symbolic link to nowhere: whoever made it meant it.
int LookAt(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? 0 : errno;
}

std::string HelpOf(const Setting& setting) {
  if (setting.default_text.empty() || setting.is_switch) return setting.help;
  return setting.help + " [" + setting.default_text + "]";
}

}  // namespace

std::string ConfigDirectory() {
  const std::string named = Variable("WEIR_CONFIG_DIR").value_or("");
  return named.empty() ? kConfigDirectory : named;
}

Status CheckLogLevel(const std::string& text) {
  return ParseLogLevel(text).status();
}

ProgramConfig::ProgramConfig(Options options) : options_(std::move(options)) {
  sources_.environment = Variable;
  sources_.variables = NamesOfVariables();
  sources_.program = options_.program;
}

void ProgramConfig::AddFileFlags(CLI::App& app) {
  const std::string variable = VariableOf(options_.table + ".log");
  std::string help = "TOML file with settings below [" + options_.table +
                     "], named as their options; options and variables (" + variable +
                     ") go before it";
  if (!options_.default_file.empty()) help += " [" + options_.default_file + ", where it exists]";
  app.add_option("--config", sources_.file, help)->type_name("FILE");
  app.add_flag("--check-config", check_only_,
               "check all settings, print each with where it comes from, start nothing");
}

void ProgramConfig::AddSettingFlags(CLI::App& app) {
  for (const Setting& setting : options_.schema) {
    const std::string flag = FlagOf(setting.name);
    CLI::Option* option = nullptr;
    if (setting.is_switch) {
      option = app.add_flag_function(
          flag,
          [this, flag, name = setting.name](int64_t on) {
            Give(name, {flag, {on > 0 ? "true" : "false"}});
          },
          HelpOf(setting));
    } else if (setting.type == SettingType::kList) {
      option = app.add_option_function<std::vector<std::string>>(
          flag,
          [this, flag, name = setting.name](const std::vector<std::string>& texts) {
            Give(name, {flag, texts});
          },
          HelpOf(setting));
    } else {
      option = app.add_option_function<std::string>(
          flag,
          [this, flag, name = setting.name](const std::string& text) {
            Give(name, {flag, {text}});
          },
          HelpOf(setting));
    }
    if (!setting.placeholder.empty()) option->type_name(setting.placeholder);
  }
}

void ProgramConfig::Give(const std::string& name, GivenSetting given) {
  sources_.flags[name] = std::move(given);
}

Result<Config> ProgramConfig::Read() const {
  return Config::Load(options_.schema, sources_);
}

void ProgramConfig::TakeDefaultFile() {
  const std::string& file = options_.default_file;
  if (!sources_.file.empty() || file.empty()) return;
  const int error = LookAt(file);
  if (error == EACCES) {  // of a directory: nobody knows whether there is one
    Say(options_.program, "warning: goes on without '" + file +
                              "', whose directory this user may not look into (--config FILE "
                              "names another)");
  } else if (error != ENOENT && error != ENOTDIR) {
    sources_.file = file;
  }
}

std::optional<int> ProgramConfig::Load() {
  TakeDefaultFile();
  Result<Config> config = Read();
  if (!config.ok()) {
    const bool is_unreadable_default =
        config.code() == ErrorCode::kAccess && sources_.file == options_.default_file;
    Say(options_.program, config.status().message() +
                              (is_unreadable_default ? " (--config FILE names another)" : ""));
    return kBadUsage;
  }
  config_ = *std::move(config);
  for (const std::string& warning : config_->warnings()) {
    Say(options_.program, "warning: " + warning);
  }
  if (!check_only_) return std::nullopt;
  if (const Status status = Check(); !status.ok()) {
    Say(options_.program, status.message());
    return kBadUsage;
  }
  std::fputs(config_->ToToml().c_str(), stdout);
  return 0;
}

void ProgramConfig::Reload() {
  const Result<Config> now = Read();
  Status status = now.status();
  if (status.ok()) status = options_.check(*now);
  if (!status.ok()) {
    WEIR_LOG_ERROR("SIGHUP: {}; nothing changes", status.message());
    return;
  }
  for (const std::string& warning : now->warnings()) WEIR_LOG_WARN("{}", warning);
  const std::vector<std::string> names = config_->DifferencesFrom(*now);
  if (names.empty()) WEIR_LOG_INFO("SIGHUP: {} says nothing new", file());
  for (const std::string& name : names) {
    if (name == options_.table + ".log") {
      SetLog(*now);
    } else {
      WEIR_LOG_WARN("SIGHUP: {} = {} needs a restart, until then it is {}", now->Where(name),
                    now->Toml(name), config_->Toml(name));
    }
  }
}

// The last line of a level that says less than this one, or the first that says more.
void ProgramConfig::SetLog(const Config& now) {
  const std::string name = options_.table + ".log";
  const Result<LogLevel> level = ParseLogLevel(now.String(name));
  if (!level.ok()) return;  // the schema's check has seen to it
  const bool tells_before = LogEnabled(LogLevel::kInfo);
  if (!tells_before) SetLogLevel(*level);
  WEIR_LOG_INFO("SIGHUP: {} = {}, was {}", now.Where(name), now.Toml(name), config_->Toml(name));
  SetLogLevel(*level);
  config_->Adopt(name, now);
}

}  // namespace weir::cli
