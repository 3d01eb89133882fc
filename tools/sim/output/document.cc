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

nlohmann::ordered_json NumbersOf(const std::vector<double>& values) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (double value : values) list.push_back(NumberOrNull(value));
  return list;
}

nlohmann::ordered_json FiguresOf(const Run& run) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Figure& figure : run.figures()) {
    nlohmann::ordered_json curves = nlohmann::ordered_json::array();
    for (const Curve& curve : figure.curves) {
      curves.push_back({{"name", curve.name},
                        {"paper", curve.paper},
                        {"x", NumbersOf(curve.x)},
                        {"y", NumbersOf(curve.y)}});
    }
    list.push_back({{"title", figure.title},
                    {"x_label", figure.x_label},
                    {"y_label", figure.y_label},
                    {"curves", std::move(curves)}});
  }
  return list;
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
                    {"about", outcome.experiment->about},
                    {"checks", checks},
                    {"figures", FiguresOf(outcome.run)},
                    {"pass", outcome.run.pass()}});
  }
  const uint64_t seed = outcomes.empty() ? 0 : outcomes.front().run.seed();
  return nlohmann::ordered_json(
             {{"version", 1}, {"seed", seed}, {"experiments", list}, {"pass", pass}})
      .dump();
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
