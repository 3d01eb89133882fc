// Config: the settings of a program. A flag beats the environment beats the file beats the default.
//
// A schema names every setting once; what it does not name is an error, never ignored. Files are
// TOML, `memory` in `[osd]` is the setting `osd.memory`, whose variable is WEIR_OSD_MEMORY and
// whose flag is --memory. Programs have all of it by tools/cli/program_config.h. Threads: const
// once loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir {

enum class SettingType : uint8_t {
  kString,
  kBool,
  kInteger,
  kSize,
  kRate,
  kDuration,
  kList,  // of texts: an array in the file, commas in the variable, the flag repeated
};

struct Setting {
  std::string name;  // lower case, dots between tables: `osd.memory`
  SettingType type = SettingType::kString;
  std::string default_text;  // as a person would type it, of a list with commas
  std::string help;
  std::string placeholder = {};  // of its value in --help
  bool is_switch = false;        // a bool whose flag alone says true
  // What the type does not say, of a list about each element; kInvalid with an example. Not asked
  // about an empty text where that is the default.
  std::function<Status(const std::string&)> check = {};
};

// What the command line says of a setting.
struct GivenSetting {
  std::string flag;  // as typed: `--memory`, `-o class`
  std::vector<std::string> texts;
};

struct ConfigSources {
  std::string file;                           // empty: none
  std::map<std::string, GivenSetting> flags;  // by setting name
  // Value of an environment variable; none set by default, getenv in programs.
  std::function<std::optional<std::string>(const std::string&)> environment;
  // Names of all variables that are set: one that begins as those of a table of the schema
  // (WEIR_OSD_) and is none of its settings is an error.
  std::vector<std::string> variables = {};
  std::string program = {};  // whose --help lists the settings
};

class Config {
 public:
  // kNotFound: no such file. kInvalid: it is a directory; else it names the setting, where it was
  // set (file:line, variable or flag), what is wrong and an example; of an unknown name the nearest
  // known one.
  static Result<Config> Load(std::vector<Setting> schema, const ConfigSources& sources);

  // Requires, of all below: the schema has `name`, with that type.
  [[nodiscard]] const std::string& String(std::string_view name) const;
  [[nodiscard]] bool Bool(std::string_view name) const;
  [[nodiscard]] int64_t Integer(std::string_view name) const;
  [[nodiscard]] uint64_t Size(std::string_view name) const;
  [[nodiscard]] uint64_t Rate(std::string_view name) const;
  [[nodiscard]] Duration Time(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& List(std::string_view name) const;

  // Where the value comes from: `default`, `/etc/weir.toml:3`, `WEIR_OSD_MEMORY`, `--memory`.
  [[nodiscard]] const std::string& Origin(std::string_view name) const;
  [[nodiscard]] bool IsDefault(std::string_view name) const;
  [[nodiscard]] bool IsOfFile(std::string_view name) const;
  [[nodiscard]] bool IsTyped(std::string_view name) const;  // on the command line
  // For errors that the program finds: the flag, the variable, or `/etc/weir.toml:3: osd.memory`.
  [[nodiscard]] std::string Where(std::string_view name) const;
  // The value as TOML: `"512MiB"`, `true`, `["a", "b"]`.
  [[nodiscard]] std::string Toml(std::string_view name) const;
  // A file that gives all the same values, each with its origin as a comment.
  [[nodiscard]] std::string ToToml() const;
  // What is odd but no error, such as a file that anybody may change.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // Settings whose values differ in `other`, of the same schema.
  [[nodiscard]] std::vector<std::string> DifferencesFrom(const Config& other) const;
  // Takes one value over from `other`, of the same schema.
  void Adopt(std::string_view name, const Config& other);

 private:
  using Value =
      std::variant<std::string, bool, int64_t, uint64_t, Duration, std::vector<std::string>>;
  enum class From : uint8_t { kDefault, kFile, kEnvironment, kFlag };
  struct Entry {
    Setting setting;
    Value value;
    std::vector<std::string> texts;  // as given
    From from = From::kDefault;
    std::string origin;
  };
  static Result<Value> Parse(const Setting& setting, const std::vector<std::string>& texts);
  Status Set(const std::string& name, std::vector<std::string> texts, From from,
             const std::string& origin);
  Status LoadFile(const std::string& path);
  [[nodiscard]] Status Unknown(const std::string& name, const std::string& origin) const;
  [[nodiscard]] Status CheckVariables(const std::vector<std::string>& variables) const;
  [[nodiscard]] const Entry& At(std::string_view name) const;
  [[nodiscard]] const Entry& At(std::string_view name, SettingType type) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> order_;  // of the schema
  std::string program_;
  std::vector<std::string> warnings_;
};

// `osd.token_rate`: WEIR_OSD_TOKEN_RATE, --token-rate, token_rate, osd.
std::string VariableOf(const std::string& name);
std::string FlagOf(const std::string& name);
std::string KeyOf(const std::string& name);
std::string TableOf(const std::string& name);  // empty: none

}  // namespace weir
