// Findings: what a checker has found wrong, by kind, and how it is printed.
//
// A kind is a stable word for scripts (`leak`, `checksum`, `link-count`); the text names the thing
// and what is wrong with it. What was repaired counts as found too.
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

struct Finding {
  std::string kind;
  std::string text;
  bool repaired = false;
};

class Findings {
 public:
  static constexpr size_t kListedMax = 1000;  // the rest is only counted

  void Add(std::string_view kind, std::string text, bool repaired = false);
  // Marks every finding of the kind as repaired.
  void Repaired(std::string_view kind);

  [[nodiscard]] bool clean() const { return damaged() == 0; }
  [[nodiscard]] uint64_t damaged() const;  // found and not repaired
  [[nodiscard]] uint64_t found() const;
  [[nodiscard]] uint64_t CountOf(std::string_view kind) const;
  [[nodiscard]] const std::vector<Finding>& listed() const { return listed_; }

  struct Count {
    uint64_t found = 0, repaired = 0;
  };
  [[nodiscard]] const std::map<std::string, Count, std::less<>>& kinds() const { return kinds_; }

 private:
  std::vector<Finding> listed_;
  std::map<std::string, Count, std::less<>> kinds_;
};

// What a check says: of whom, what it counted, what it found.
struct CheckReport {
  std::string subject;  // "/dev/sdb, osd.3 of cluster 1f0c..."
  // Keys as in JSON (`used_bytes`); order is that of printing.
  std::vector<std::pair<std::string, uint64_t>> facts;
  Findings findings;

  [[nodiscard]] uint64_t Fact(std::string_view key) const;  // 0: not among them
};

// For people: facts, findings, a verdict in the last line.
std::string ToText(const CheckReport& report);
// One document, with "version":1.
std::string ToJson(const CheckReport& report);

}  // namespace weir
