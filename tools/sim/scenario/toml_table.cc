#include "tools/sim/scenario/toml_table.h"

#include <fmt/format.h>

#include "common/base/nearest.h"
#include "common/base/units.h"

namespace weir::sim {

TomlTable::TomlTable(const toml::table* table, std::string file, std::string where)
    : table_(table), file_(std::move(file)), where_(std::move(where)) {}

void TomlTable::FailAt(uint32_t line, std::string_view key, const std::string& why) {
  if (!error_.ok()) return;
  const std::string place = line > 0 ? fmt::format("{}:{}", file_, line) : file_;
  const std::string what = key.empty() ? where_ : fmt::format("'{}' of {}", key, where_);
  error_ = Status(ErrorCode::kInvalid, fmt::format("{}: {}: {}", place, what, why));
}

void TomlTable::Fail(std::string_view key, const std::string& why) {
  const toml::node* node = table_->get(key);
  FailAt(node == nullptr ? table_->source().begin.line : node->source().begin.line, key, why);
}

const toml::node* TomlTable::Find(std::string_view key) {
  known_.insert(std::string(key));
  return table_->get(key);
}

bool TomlTable::Has(std::string_view key) {
  return Find(key) != nullptr;
}

std::string TomlTable::TextOf(std::string_view key, const toml::node& node, std::string_view kind) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  Fail(key, fmt::format("must be {}", kind));
  return "";
}

std::string TomlTable::Text(std::string_view key, std::string fallback) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  if (const auto* text = node->as_string()) return text->get();
  Fail(key, "must be a text in quotes");
  return fallback;
}

std::string TomlTable::Word(std::string_view key, const std::vector<std::string_view>& words,
                            std::string fallback) {
  std::string text = Text(key, std::move(fallback));
  for (std::string_view word : words) {
    if (word == text) return text;
  }
  Fail(key, fmt::format("'{}' is unknown (there is: {})", text, fmt::join(words, ", ")));
  return text;
}

double TomlTable::Number(std::string_view key, double fallback, double low, double high) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  const std::optional<double> value = node->value<double>();
  if (!value || node->is_boolean()) {
    Fail(key, "must be a number");
    return fallback;
  }
  if (!(*value >= low && *value <= high)) {
    Fail(key, fmt::format("{:g} is not within {:g} and {:g}", *value, low, high));
  }
  return *value;
}

int64_t TomlTable::Whole(std::string_view key, int64_t fallback, int64_t low, int64_t high) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  const auto* number = node->as_integer();
  if (number == nullptr) {
    Fail(key, "must be a whole number");
    return fallback;
  }
  if (number->get() < low || number->get() > high) {
    Fail(key, fmt::format("{} is not within {} and {}", number->get(), low, high));
    return fallback;
  }
  return number->get();
}

template <typename Value>
Value TomlTable::Parsed(std::string_view key, Value fallback,
                        Result<Value> (*parse)(std::string_view), std::string_view kind) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  const std::string text = TextOf(key, *node, kind);
  if (!error_.ok()) return fallback;
  const Result<Value> value = parse(text);
  if (value.ok()) return *value;
  Fail(key, value.status().message());
  return fallback;
}

uint64_t TomlTable::Size(std::string_view key, uint64_t fallback) {
  return Parsed<uint64_t>(key, fallback, ParseSize, "a size in quotes, as \"64KiB\"");
}

uint64_t TomlTable::Rate(std::string_view key, uint64_t fallback) {
  return Parsed<uint64_t>(key, fallback, ParseRate, "a rate in quotes, as \"40MiB/s\"");
}

Duration TomlTable::Time(std::string_view key, Duration fallback) {
  return Parsed<Duration>(key, fallback, ParseDuration, "a time in quotes, as \"30s\"");
}

std::vector<double> TomlTable::Numbers(std::string_view key) {
  const toml::node* node = Find(key);
  std::vector<double> numbers;
  if (node == nullptr) return numbers;
  const auto* array = node->as_array();
  if (array == nullptr) {
    Fail(key, "must be a list of numbers, as [0, 1]");
    return numbers;
  }
  for (const toml::node& entry : *array) {
    const std::optional<double> value = entry.value<double>();
    if (!value) Fail(key, "must be a list of numbers, as [0, 1]");
    numbers.push_back(value.value_or(0));
  }
  return numbers;
}

std::vector<uint64_t> TomlTable::Rates(std::string_view key) {
  constexpr std::string_view kKind = "a list of rates in quotes, as [\"8MiB/s\", \"4MiB/s\"]";
  const toml::node* node = Find(key);
  std::vector<uint64_t> rates;
  if (node == nullptr) return rates;
  const auto* array = node->as_array();
  if (array == nullptr) {
    Fail(key, fmt::format("must be {}", kKind));
    return rates;
  }
  for (const toml::node& entry : *array) {
    const Result<uint64_t> rate = ParseRate(TextOf(key, entry, kKind));
    if (!rate.ok()) Fail(key, rate.status().message());
    rates.push_back(rate.ok() ? *rate : 0);
  }
  return rates;
}

bool TomlTable::Flag(std::string_view key, bool fallback) {
  const toml::node* node = Find(key);
  if (node == nullptr) return fallback;
  if (const auto* flag = node->as_boolean()) return flag->get();
  Fail(key, "must be true or false");
  return fallback;
}

std::vector<TomlTable> TomlTable::Tables(std::string_view key, std::string_view name) {
  const toml::node* node = Find(key);
  std::vector<TomlTable> tables;
  if (node == nullptr) return tables;
  const auto* array = node->as_array();
  if (array == nullptr || !array->is_array_of_tables()) {
    Fail(key, "must be a list of tables, as [{ rate = \"10MiB/s\" }, { rate = \"100MiB/s\" }]");
    return tables;
  }
  for (const toml::node& entry : *array) {
    tables.emplace_back(entry.as_table(), file_,
                        fmt::format("{} {} of {}", name, tables.size() + 1, where_));
  }
  return tables;
}

std::pair<uint64_t, uint64_t> TomlTable::Sizes(std::string_view key, uint64_t fallback) {
  const toml::node* node = Find(key);
  if (node == nullptr) return {fallback, fallback};
  const auto* array = node->as_array();
  if (array == nullptr) {
    const uint64_t size = Size(key, fallback);
    return {size, size};
  }
  std::vector<uint64_t> sizes;
  for (const toml::node& entry : *array) {
    const Result<uint64_t> size = ParseSize(TextOf(key, entry, "one size or two"));
    if (!size.ok()) Fail(key, size.status().message());
    sizes.push_back(size.ok() ? *size : fallback);
  }
  if (sizes.size() != 2 || sizes[0] > sizes[1]) {
    Fail(key, "must be one size, or the least and the most, as [\"1KiB\", \"16KiB\"]");
    return {fallback, fallback};
  }
  return {sizes[0], sizes[1]};
}

Status TomlTable::Done() {
  if (!error_.ok()) return error_;
  for (const auto& [key, node] : *table_) {
    if (known_.contains(key.str())) continue;
    const std::string name(key.str());
    const std::string nearest = NearestOf(name, {known_.begin(), known_.end()});
    FailAt(node.source().begin.line, "",
           fmt::format("unknown key '{}'{}; there are {}", name,
                       nearest.empty() ? "" : fmt::format(", the nearest is '{}'", nearest),
                       fmt::join(known_, ", ")));
  }
  return error_;
}

}  // namespace weir::sim
