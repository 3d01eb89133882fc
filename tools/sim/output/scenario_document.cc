#include "tools/sim/output/scenario_document.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/units.h"
#include "tools/cli/table.h"
#include "tools/sim/output/plot.h"

namespace weir::sim {
namespace {

using nlohmann::ordered_json;

ordered_json Whole(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (double value : values) list.push_back(std::llround(value));
  return list;
}

void AddSeries(const Series& series, ordered_json* out) {
  (*out)["bytes_per_s"] = Whole(series.bytes_per_s);
  (*out)["iops"] = series.iops;
  (*out)["latency_us"] = {{"mean", Whole(series.mean_latency_us)},
                          {"p99", Whole(series.p99_latency_us)}};
}

std::vector<double> Moments(const Scenario& scenario, size_t count) {
  std::vector<double> moments;
  for (size_t i = 0; i < count; ++i) {
    moments.push_back(static_cast<double>(i) * ToSeconds(scenario.window));
  }
  return moments;
}

std::string Rate(double bytes_per_s) {
  return FormatRate(static_cast<uint64_t>(std::llround(bytes_per_s)));
}

std::string Microseconds(double us) {
  return FormatDuration(Duration(std::llround(us) * 1000));
}

ordered_json AdmissionsOf(const ScenarioResult& result) {
  ordered_json list = ordered_json::array();
  for (const auto& one : result.admissions) {
    list.push_back({{"class", one.name},
                    {"admitted", one.admitted},
                    {"measured", one.measured},
                    {"needed_iops", one.needed},
                    {"reserved_iops", one.reserved},
                    {"limit_iops", one.limit},
                    {"why", one.why}});
  }
  return list;
}

std::string AdmissionTable(const ScenarioResult& result) {
  if (result.admissions.empty()) return "";
  cli::Table table({"ASKED", "", ">NEEDS /S", ">RESERVED /S", ">OF /S", "BY", "WHY"});
  for (const auto& one : result.admissions) {
    table.AddRow({one.name, one.admitted ? "admitted" : "refused",
                  fmt::format("{:.1f}", one.needed), fmt::format("{:.1f}", one.reserved),
                  fmt::format("{:.1f}", one.limit), one.measured ? "measurement" : "worst case",
                  one.why});
  }
  return table.Render() + "\n";
}

}  // namespace

std::string JsonOf(const Scenario& scenario, const ScenarioResult& result) {
  ordered_json classes = ordered_json::array();
  for (const auto& of_class : result.classes) {
    ordered_json out{{"name", of_class.name},
                     {"mean_bytes_per_s", std::llround(of_class.mean_bytes_per_s)},
                     {"mean_iops", of_class.mean_iops},
                     {"p50_us", std::llround(of_class.p50_us)},
                     {"p99_us", std::llround(of_class.p99_us)}};
    AddSeries(of_class.all, &out);
    ordered_json devices = ordered_json::array();
    for (size_t i = 0; i < of_class.device_bytes_per_s.size(); ++i) {
      devices.push_back({{"name", scenario.devices[i].name},
                         {"bytes_per_s", Whole(of_class.device_bytes_per_s[i])}});
    }
    out["devices"] = std::move(devices);
    classes.push_back(std::move(out));
  }
  ordered_json devices = ordered_json::array();
  for (const auto& device : result.devices) {
    ordered_json out{{"name", device.name}, {"busy", device.busy}};
    AddSeries(device.all, &out);
    for (const auto& tier : device.tiers) {
      out["tiers"].push_back({{"name", tier.name}, {"iops", tier.iops}, {"busy", tier.busy}});
    }
    devices.push_back(std::move(out));
  }
  const size_t windows = result.devices.front().all.iops.size();
  return ordered_json({{"version", 1},
                       {"seed", scenario.seed},
                       {"duration_s", ToSeconds(scenario.duration)},
                       {"window_s", ToSeconds(scenario.window)},
                       {"t_s", Moments(scenario, windows)},
                       {"classes", std::move(classes)},
                       {"devices", std::move(devices)},
                       {"admissions", AdmissionsOf(result)}})
      .dump();
}

std::string TableOf(const Scenario& scenario, const ScenarioResult& result) {
  cli::Table classes({"CLASS", ">MEAN RATE", ">MEAN IOPS", ">P50", ">P99"});
  Figure figure{"Rate of each class", "s", "MiB/s", {}};
  for (const auto& of_class : result.classes) {
    classes.AddRow({of_class.name, Rate(of_class.mean_bytes_per_s),
                    fmt::format("{:.1f}", of_class.mean_iops), Microseconds(of_class.p50_us),
                    Microseconds(of_class.p99_us)});
    Curve curve{of_class.name, Moments(scenario, of_class.all.iops.size()), {}};
    for (double rate : of_class.all.bytes_per_s) {
      curve.y.push_back(rate / static_cast<double>(kMiB));
    }
    figure.curves.push_back(std::move(curve));
  }
  cli::Table devices({"DEVICE", ">MEAN RATE", ">MEAN IOPS", ">BUSY"});
  for (const auto& device : result.devices) {
    devices.AddRow({device.name, Rate(Mean(device.all.bytes_per_s)),
                    fmt::format("{:.1f}", Mean(device.all.iops)),
                    fmt::format("{:.0f}%", 100 * device.busy)});
    for (const auto& tier : device.tiers) {
      devices.AddRow({"  " + tier.name, "", fmt::format("{:.1f}", tier.iops),
                      fmt::format("{:.0f}%", 100 * tier.busy)});
    }
  }
  return AdmissionTable(result) + classes.Render() + "\n" + devices.Render() + "\n" +
         TextOf(figure);
}

}  // namespace weir::sim
