#include "common/config/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "common/base/check.h"
#include "common/base/files.h"
#include "common/base/nearest.h"
#include "common/base/units.h"

namespace weir {
namespace {

struct FileValue {
  std::string name;
  std::vector<std::string> texts;
  enum class Kind : uint8_t { kOne, kSeveral, kNone, kTable } kind = Kind::kOne;
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

FileValue ToValue(std::string name, const toml::node& node) {
  FileValue value{std::move(name), {}, FileValue::Kind::kNone, node.source().begin.line};
  if (auto text = ToText(node)) {
    value.kind = FileValue::Kind::kOne;
    value.texts = {*std::move(text)};
  } else if (const auto* array = node.as_array()) {
    for (const toml::node& element : *array) {
      if (!element.is_string()) return value;
      value.texts.push_back(element.as_string()->get());
    }
    value.kind = FileValue::Kind::kSeveral;
  }
  return value;
}

// An empty table stands for itself.
void Flatten(const toml::table& table, const std::string& prefix, std::vector<FileValue>* out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const auto* inner = node.as_table();
    if (inner == nullptr) {
      out->push_back(ToValue(name, node));
    } else if (inner->empty()) {
      out->push_back({name, {}, FileValue::Kind::kTable, node.source().begin.line});
    } else {
      Flatten(*inner, name + ".", out);
    }
  }
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

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::istringstream in(text + ",");
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

// As one source gives it that has no lists.
std::vector<std::string> TextsOf(const Setting& setting, const std::string& text) {
  if (setting.type == SettingType::kList) return SplitCommas(text);
  return {text};
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04X", static_cast<unsigned>(c));
      quoted += escaped.data();
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string ListOf(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + Quoted(text);
  return "[" + list + "]";
}

// A line of a file that sets it.
std::string ExampleOf(const Setting& setting) {
  const std::string& text = setting.default_text;
  std::string value = text.empty() ? "\"TEXT\"" : Quoted(text);
  if (setting.type == SettingType::kBool || setting.type == SettingType::kInteger) value = text;
  if (setting.type == SettingType::kList) value = ListOf(SplitCommas(text.empty() ? "TEXT" : text));
  return KeyOf(setting.name) + " = " + value;
}

// Why stat(2) finds no file there.
Status NotThere(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (error) return {ErrorCode::kNotFound, "there is no configuration file '" + path + "'"};
  return {ErrorCode::kNotFound, "configuration file '" + path + "' is a symbolic link to '" +
                                    target.string() + "', which is not there"};
}

}  // namespace

std::string VariableOf(const std::string& name) {
  std::string variable = "WEIR_" + name;
  for (char& c : variable) {
    const auto u = static_cast<unsigned char>(c);
    c = std::isalnum(u) != 0 ? static_cast<char>(std::toupper(u)) : '_';
  }
  return variable;
}

std::string KeyOf(const std::string& name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string TableOf(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

std::string FlagOf(const std::string& name) {
  std::string flag = "--" + KeyOf(name);
  for (char& c : flag) c = c == '_' ? '-' : c;
  return flag;
}

Result<Config> Config::Load(std::vector<Setting> schema, const ConfigSources& sources) {
  Config config;
  config.program_ = sources.program;
  for (Setting& setting : schema) {
    const std::string name = setting.name;
    const std::vector<std::string> texts = TextsOf(setting, setting.default_text);
    Entry entry{std::move(setting), {}, {}, From::kDefault, {}};
    WEIR_CHECK(config.entries_.try_emplace(name, std::move(entry)).second,
               "a setting stands twice in the schema");
    config.order_.push_back(name);
    WEIR_RETURN_IF_ERROR(config.Set(name, texts, From::kDefault, "default"));
  }
  if (!sources.file.empty()) WEIR_RETURN_IF_ERROR(config.LoadFile(sources.file));
  WEIR_RETURN_IF_ERROR(config.CheckVariables(sources.variables));
  if (sources.environment) {
    for (const std::string& name : config.order_) {
      const std::string variable = VariableOf(name);
      const auto text = sources.environment(variable);
      if (!text) continue;
      std::vector<std::string> texts = TextsOf(config.At(name).setting, *text);
      WEIR_RETURN_IF_ERROR(config.Set(name, std::move(texts), From::kEnvironment, variable));
    }
  }
  for (const auto& [name, given] : sources.flags) {
    WEIR_RETURN_IF_ERROR(config.Set(name, given.texts, From::kFlag, given.flag));
  }
  return config;
}

Status Config::LoadFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NotThere(path);
    return Status::FromErrno(errno, "configuration file '" + path + "'");
  }
  if (S_ISDIR(info.st_mode)) {
    return {ErrorCode::kInvalid,
            "configuration file '" + path + "' is a directory: name a file in it"};
  }
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status().Annotate("configuration file '" + path + "'");
  if ((info.st_mode & S_IWOTH) != 0) {
    warnings_.push_back(path + ": everybody may change it (chmod o-w " + path + ")");
  }
  std::vector<FileValue> values;
  try {
    Flatten(toml::parse(*text, path), "", &values);
  } catch (const toml::parse_error& error) {
    return {ErrorCode::kInvalid, path + ":" + std::to_string(error.source().begin.line) + ": " +
                                     std::string(error.description()) +
                                     " (texts, also sizes and rates, stand in double quotes)"};
  }
  for (FileValue& value : values) {
    const std::string origin = path + ":" + std::to_string(value.line);
    const auto known = entries_.find(value.name);
    const auto in_table = [&](const std::string& name) { return TableOf(name) == value.name; };
    const bool empty = value.kind == FileValue::Kind::kTable;
    if (empty && std::any_of(order_.begin(), order_.end(), in_table)) continue;
    if (known == entries_.end()) return Unknown(value.name, origin);
    const Setting& setting = known->second.setting;
    const bool fits =
        value.kind == FileValue::Kind::kOne ||
        (value.kind == FileValue::Kind::kSeveral && setting.type == SettingType::kList);
    if (!fits) {
      const bool list = setting.type == SettingType::kList;
      return {ErrorCode::kInvalid, origin + ": " + value.name + ": must be " +
                                       (list ? "a list of texts" : "one value") +
                                       "; write for example " + ExampleOf(setting)};
    }
    WEIR_RETURN_IF_ERROR(Set(value.name, std::move(value.texts), From::kFile, origin));
  }
  return Status::Ok();
}

Status Config::Unknown(const std::string& name, const std::string& origin) const {
  const std::string table = TableOf(name);
  const auto in_table = [&](const std::string& known) { return TableOf(known) == table; };
  const bool known_table = std::any_of(order_.begin(), order_.end(), in_table);
  // Below one table names are alike in what is before the dot: there only keys tell.
  const bool by_key = known_table || table.empty();
  std::map<std::string, std::string> names;
  std::vector<std::string> compared;
  for (const std::string& known : order_) {
    if (known_table && !in_table(known)) continue;
    compared.push_back(by_key ? KeyOf(known) : known);
    names[compared.back()] = known;
  }
  const std::string nearest = NearestOf(by_key ? KeyOf(name) : name, compared);
  std::string meant;
  if (!nearest.empty()) meant = "did you mean '" + names[nearest] + "'?";
  if (!known_table && nearest == name) meant = "write it below [" + TableOf(names[name]) + "]";
  std::string message = origin + ": unknown setting '" + name + "'";
  if (!meant.empty()) message += "; " + meant;
  if (!program_.empty()) message += " (" + program_ + " --help lists all)";
  return {ErrorCode::kInvalid, message};
}

Status Config::CheckVariables(const std::vector<std::string>& variables) const {
  std::map<std::string, std::vector<std::string>> known;  // WEIR_OSD_: MEMORY, LOG ...
  for (const std::string& name : order_) {
    const std::string prefix = VariableOf(TableOf(name) + ".");
    if (!TableOf(name).empty()) known[prefix].push_back(VariableOf(name).substr(prefix.size()));
  }
  for (const std::string& variable : variables) {
    for (const auto& [prefix, rests] : known) {
      if (!variable.starts_with(prefix)) continue;
      const std::string rest = variable.substr(prefix.size());
      if (std::find(rests.begin(), rests.end(), rest) != rests.end()) continue;
      std::string message = "unknown variable '" + variable + "'";
      const std::string nearest = NearestOf(rest, rests);
      if (nearest.empty()) {
        message += "; unset it";
      } else {
        message.append("; did you mean '").append(prefix).append(nearest).append("'?");
      }
      if (!program_.empty()) message += " (" + program_ + " --help lists all settings)";
      return {ErrorCode::kInvalid, message};
    }
  }
  return Status::Ok();
}

Status Config::Set(const std::string& name, std::vector<std::string> texts, From from,
                   const std::string& origin) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return Unknown(name, origin);
  Entry& entry = it->second;
  auto value = Parse(entry.setting, texts);
  if (!value.ok()) {
    return value.status().Annotate(from == From::kFile ? origin + ": " + name : origin);
  }
  entry.value = *std::move(value);
  entry.texts = std::move(texts);
  entry.from = from;
  entry.origin = origin;
  return Status::Ok();
}

Result<Config::Value> Config::Parse(const Setting& setting, const std::vector<std::string>& texts) {
  if (setting.check) {
    for (const std::string& text : texts) {
      if (text.empty() && setting.default_text.empty()) continue;
      WEIR_RETURN_IF_ERROR(setting.check(text));
    }
  }
  if (setting.type == SettingType::kList) {
    if (!texts.empty() || setting.default_text.empty()) return Value(texts);
    return {ErrorCode::kInvalid, "it is empty; write for example " + ExampleOf(setting)};
  }
  WEIR_CHECK(texts.size() == 1, setting.name);
  const std::string& text = texts.front();
  switch (setting.type) {
    case SettingType::kString:
    case SettingType::kList:
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

const Config::Entry& Config::At(std::string_view name) const {
  const auto it = entries_.find(name);
  WEIR_CHECK(it != entries_.end(), name);
  return it->second;
}

const Config::Entry& Config::At(std::string_view name, SettingType type) const {
  const Entry& entry = At(name);
  WEIR_CHECK(entry.setting.type == type, name);
  return entry;
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
const std::vector<std::string>& Config::List(std::string_view name) const {
  return std::get<std::vector<std::string>>(At(name, SettingType::kList).value);
}

const std::string& Config::Origin(std::string_view name) const {
  return At(name).origin;
}

bool Config::IsDefault(std::string_view name) const {
  return At(name).from == From::kDefault;
}

bool Config::IsOfFile(std::string_view name) const {
  return At(name).from == From::kFile;
}

bool Config::IsTyped(std::string_view name) const {
  return At(name).from == From::kFlag;
}

std::string Config::Where(std::string_view name) const {
  const Entry& entry = At(name);
  if (entry.from == From::kDefault) return entry.setting.name;
  return entry.from == From::kFile ? entry.origin + ": " + entry.setting.name : entry.origin;
}

std::string Config::Toml(std::string_view name) const {
  const Entry& entry = At(name);
  if (const bool* flag = std::get_if<bool>(&entry.value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&entry.value)) return std::to_string(*number);
  if (entry.setting.type != SettingType::kList) return Quoted(entry.texts.front());
  return ListOf(entry.texts);
}

std::string Config::ToToml() const {
  std::vector<std::string> tables = {""};  // what has none stands before all that have one
  for (const std::string& name : order_) {
    const std::string table = TableOf(name);
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
  }
  std::string toml;
  for (const std::string& table : tables) {
    if (!table.empty()) toml += (toml.empty() ? "[" : "\n[") + table + "]\n";
    for (const std::string& name : order_) {
      if (TableOf(name) != table) continue;
      toml += KeyOf(name) + " = " + Toml(name) + "  # " + Origin(name) + "\n";
    }
  }
  return toml;
}

std::vector<std::string> Config::DifferencesFrom(const Config& other) const {
  std::vector<std::string> names;
  for (const std::string& name : order_) {
    if (At(name).value != other.At(name).value) names.push_back(name);
  }
  return names;
}

void Config::Adopt(std::string_view name, const Config& other) {
  const auto it = entries_.find(name);
  WEIR_CHECK(it != entries_.end(), name);
  it->second = other.At(name);
}

}  // namespace weir
