#include "common/config/config.h"

#include <toml++/toml.h>

#include <cctype>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "common/base/check.h"
#include "common/base/units.h"

namespace weir {
namespace {

struct FileValue {
  std::string name;
  std::optional<std::string> text;  // none: an array or a date, which no setting is
  uint32_t line = 0;
};

std::optional<std::string> ToText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* real = node.as_floating_point()) {
    std::ostringstream out;
    out << real->get();
    return out.str();
  }
  return std::nullopt;
}

void Flatten(const toml::table& table, const std::string& prefix, std::vector<FileValue>* out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      Flatten(*inner, name + ".", out);
    } else {
      out->push_back({name, ToText(node), node.source().begin.line});
    }
  }
}

std::string VariableOf(const std::string& name) {
  std::string variable = "WEIR_" + name;
  for (char& c : variable) {
    const auto u = static_cast<unsigned char>(c);
    c = std::isalnum(u) != 0 ? static_cast<char>(std::toupper(u)) : '_';
  }
  return variable;
}

Result<bool> ParseBool(const std::string& text) {
  if (text == "true" || text == "on" || text == "yes" || text == "1") return true;
  if (text == "false" || text == "off" || text == "no" || text == "0") return false;
  return {ErrorCode::kInvalid, "'" + text + "' is neither true nor false; write true or false"};
}

Result<int64_t> ParseInteger(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return {ErrorCode::kInvalid, "'" + text + "' is no whole number; write for example 4"};
  }
  return value;
}

}  // namespace

Result<Config> Config::Load(std::vector<Setting> schema, const ConfigSources& sources) {
  Config config;
  for (Setting& setting : schema) {
    const std::string name = setting.name;
    const std::string text = setting.default_text;
    WEIR_CHECK(config.entries_.try_emplace(name, Entry{std::move(setting), {}, {}}).second,
               "a setting stands twice in the schema");
    WEIR_RETURN_IF_ERROR(config.Set(name, text, "default"));
  }
  if (!sources.file.empty()) WEIR_RETURN_IF_ERROR(config.LoadFile(sources.file));
  if (sources.environment) {
    for (const auto& [name, entry] : config.entries_) {
      const auto text = sources.environment(VariableOf(name));
      if (text) WEIR_RETURN_IF_ERROR(config.Set(name, *text, VariableOf(name)));
    }
  }
  for (const auto& [name, text] : sources.flags) {
    WEIR_RETURN_IF_ERROR(config.Set(name, text, "--" + name));
  }
  return config;
}

Status Config::LoadFile(const std::string& path) {
  if (!std::filesystem::exists(path) || std::filesystem::is_directory(path)) {
    return {ErrorCode::kNotFound, "there is no configuration file '" + path + "'"};
  }
  std::vector<FileValue> values;
  try {
    Flatten(toml::parse_file(path), "", &values);
  } catch (const toml::parse_error& error) {
    return {ErrorCode::kInvalid, path + ":" + std::to_string(error.source().begin.line) + ": " +
                                     std::string(error.description())};
  }
  for (const FileValue& value : values) {
    const std::string origin = path + ":" + std::to_string(value.line);
    if (!value.text) {
      return {ErrorCode::kInvalid, origin + ": '" + value.name + "' must be a single value"};
    }
    WEIR_RETURN_IF_ERROR(Set(value.name, *value.text, origin));
  }
  return Status::Ok();
}

Status Config::Set(const std::string& name, const std::string& text, const std::string& origin) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    std::string known;
    for (const auto& [known_name, entry] : entries_) {
      known += (known.empty() ? "" : ", ") + known_name;
    }
    return {ErrorCode::kInvalid, origin + ": unknown setting '" + name + "'; there are " + known};
  }
  auto value = Parse(it->second.setting.type, text);
  if (!value.ok()) return value.status().Annotate(origin + ": " + name);
  it->second.value = *std::move(value);
  it->second.origin = origin;
  return Status::Ok();
}

Result<Config::Value> Config::Parse(SettingType type, const std::string& text) {
  switch (type) {
    case SettingType::kString:
      return Value(text);
    case SettingType::kBool: {
      WEIR_ASSIGN_OR_RETURN(const bool flag, ParseBool(text));
      return Value(flag);
    }
    case SettingType::kInteger: {
      WEIR_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(text));
      return Value(number);
    }
    case SettingType::kSize: {
      WEIR_ASSIGN_OR_RETURN(const uint64_t size, ParseSize(text));
      return Value(size);
    }
    case SettingType::kRate: {
      WEIR_ASSIGN_OR_RETURN(const uint64_t rate, ParseRate(text));
      return Value(rate);
    }
    case SettingType::kDuration: {
      WEIR_ASSIGN_OR_RETURN(const Duration duration, ParseDuration(text));
      return Value(duration);
    }
  }
  return {ErrorCode::kInvalid, "unknown type of setting"};
}

const Config::Entry& Config::At(std::string_view name, SettingType type) const {
  const auto it = entries_.find(name);
  WEIR_CHECK(it != entries_.end(), name);
  WEIR_CHECK(it->second.setting.type == type, name);
  return it->second;
}

const std::string& Config::String(std::string_view name) const {
  return std::get<std::string>(At(name, SettingType::kString).value);
}
bool Config::Bool(std::string_view name) const {
  return std::get<bool>(At(name, SettingType::kBool).value);
}
int64_t Config::Integer(std::string_view name) const {
  return std::get<int64_t>(At(name, SettingType::kInteger).value);
}
uint64_t Config::Size(std::string_view name) const {
  return std::get<uint64_t>(At(name, SettingType::kSize).value);
}
uint64_t Config::Rate(std::string_view name) const {
  return std::get<uint64_t>(At(name, SettingType::kRate).value);
}
Duration Config::Time(std::string_view name) const {
  return std::get<Duration>(At(name, SettingType::kDuration).value);
}

const std::string& Config::Origin(std::string_view name) const {
  const auto it = entries_.find(name);
  WEIR_CHECK(it != entries_.end(), name);
  return it->second.origin;
}

std::string Config::Help(const std::vector<Setting>& schema) {
  std::string text;
  for (const Setting& setting : schema) {
    text += setting.name + " = " + setting.default_text + "  # " + setting.help + "\n";
  }
  return text;
}

}  // namespace weir
