#include "tools/sim/output/document.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/cli/table.h"

namespace weir::sim {
namespace {

nlohmann::ordered_json NumberOrNull(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

std::string Short(double value) {
  return std::isfinite(value) ? fmt::format("{:.5g}", value) : "";
}

}  // namespace

std::string JsonOf(const std::vector<Outcome>& outcomes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool pass = true;
  for (const Outcome& outcome : outcomes) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const Check& check : outcome.run.checks()) {
      checks.push_back({{"name", check.name},
                        {"expected", NumberOrNull(check.expected)},
                        {"measured", NumberOrNull(check.measured)},
                        {"low", NumberOrNull(check.low)},
                        {"high", NumberOrNull(check.high)},
                        {"pass", check.pass()}});
    }
    pass = pass && outcome.run.pass();
    list.push_back({{"id", outcome.experiment->id},
                    {"title", outcome.experiment->title},
                    {"source", outcome.experiment->source},
                    {"checks", checks},
                    {"pass", outcome.run.pass()}});
  }
  return nlohmann::ordered_json({{"version", 1}, {"experiments", list}, {"pass", pass}}).dump();
}

std::string TableOf(const Outcome& outcome) {
  const Experiment& experiment = *outcome.experiment;
  std::string text = fmt::format("{}  {} ({})  {}\n", experiment.id, experiment.title,
                                 experiment.source, outcome.run.pass() ? "ok" : "FAILED");
  cli::Table table({"  CHECK", ">EXPECTED", ">MEASURED", ">LOW", ">HIGH", "RESULT"});
  for (const Check& check : outcome.run.checks()) {
    const bool asserted = std::isfinite(check.low) || std::isfinite(check.high);
    table.AddRow({"  " + check.name, Short(check.expected), Short(check.measured), Short(check.low),
                  Short(check.high), !check.pass() ? "FAIL" : (asserted ? "ok" : "-")});
  }
  return text + table.Render();
}

}  // namespace weir::sim
