// Config: the settings of a program. A flag beats the environment beats the file beats the default.
//
// A schema names every setting once; what it does not name is an error, never ignored. Files are
// TOML, `memory` in `[osd]` is the setting `osd.memory`, whose variable is WEIR_OSD_MEMORY.
// Threads: const once loaded.
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

enum class SettingType : uint8_t { kString, kBool, kInteger, kSize, kRate, kDuration };

struct Setting {
  std::string name;  // lower case, dots between tables: `osd.memory`
  SettingType type = SettingType::kString;
  std::string default_text;  // as a person would type it
  std::string help;
};

struct ConfigSources {
  std::string file;                          // empty: none
  std::map<std::string, std::string> flags;  // setting name -> text
  // Value of an environment variable; none set by default, getenv in programs.
  std::function<std::optional<std::string>(const std::string&)> environment;
};

class Config {
 public:
  // kNotFound: no such file. kInvalid names the setting, where it was set (file:line, variable or
  // flag), what is wrong and an example.
  static Result<Config> Load(std::vector<Setting> schema, const ConfigSources& sources);

  // Requires: the schema has `name` with that type.
  [[nodiscard]] const std::string& String(std::string_view name) const;
  [[nodiscard]] bool Bool(std::string_view name) const;
  [[nodiscard]] int64_t Integer(std::string_view name) const;
  [[nodiscard]] uint64_t Size(std::string_view name) const;
  [[nodiscard]] uint64_t Rate(std::string_view name) const;
  [[nodiscard]] Duration Time(std::string_view name) const;

  // Where the value comes from: `default`, `/etc/weir.toml:3`, `WEIR_OSD_MEMORY`, `--osd.memory`.
  [[nodiscard]] const std::string& Origin(std::string_view name) const;
  // One line per setting: name, default, help.
  static std::string Help(const std::vector<Setting>& schema);

 private:
  using Value = std::variant<std::string, bool, int64_t, uint64_t, Duration>;
  struct Entry {
    Setting setting;
    Value value;
    std::string origin;
  };
  Status Set(const std::string& name, const std::string& text, const std::string& origin);
  static Result<Value> Parse(SettingType type, const std::string& text);
  Status LoadFile(const std::string& path);
  [[nodiscard]] const Entry& At(std::string_view name, SettingType type) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace weir
