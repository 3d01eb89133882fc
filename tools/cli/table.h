// Table: rows for people, columns as wide as they need, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace weir::cli {

class Table {
 public:
  // A heading that begins with '>' sets its column flush right.
  explicit Table(std::vector<std::string> headings);
  // Requires: as many cells as headings.
  void AddRow(std::vector<std::string> cells);
  // Lines that end in '\n', without blanks at their ends; the headings alone when there is no row.
  [[nodiscard]] std::string Render() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

}  // namespace weir::cli
