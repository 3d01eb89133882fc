// TomlTable: a table of a scenario, read key by key. Whatever nobody asked for is an error at the
// end, with what there is; so is a value of the wrong kind. The first error stays, and reading goes
// on with defaults, so that a reader is a plain list of keys.
#pragma once

#include <toml++/toml.h>

#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir::sim {

class TomlTable {
 public:
  // `where`: "device 2 ('ssd')" or "scheduler", for messages.
  TomlTable(const toml::table* table, std::string file, std::string where);

  [[nodiscard]] bool Has(std::string_view key);
  std::string Text(std::string_view key, std::string fallback);
  // One of these words.
  std::string Word(std::string_view key, const std::vector<std::string_view>& words,
                   std::string fallback);
  double Number(std::string_view key, double fallback, double low, double high);
  int64_t Whole(std::string_view key, int64_t fallback, int64_t low, int64_t high);
  uint64_t Size(std::string_view key, uint64_t fallback);
  uint64_t Rate(std::string_view key, uint64_t fallback);
  Duration Time(std::string_view key, Duration fallback);
  std::vector<double> Numbers(std::string_view key);
  // A list of rates.
  std::vector<uint64_t> Rates(std::string_view key);
  // One size, or [least, most].
  std::pair<uint64_t, uint64_t> Sizes(std::string_view key, uint64_t fallback);

  // true or false.
  bool Flag(std::string_view key, bool fallback);
  // A list of tables; `where()` of the n-th is "NAME n of ...".
  std::vector<TomlTable> Tables(std::string_view key, std::string_view name);

  // An error of the reader's own about a key.
  void Fail(std::string_view key, const std::string& why);
  // The first error; a key that nobody read counts.
  Status Done();

 private:
  const toml::node* Find(std::string_view key);
  std::string TextOf(std::string_view key, const toml::node& node, std::string_view kind);
  template <typename Value>
  Value Parsed(std::string_view key, Value fallback, Result<Value> (*parse)(std::string_view),
               std::string_view kind);
  void FailAt(uint32_t line, std::string_view key, const std::string& why);

  const toml::table* table_;
  std::string file_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  Status error_;
};

}  // namespace weir::sim
