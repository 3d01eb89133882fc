// Scenario: a cluster, its classes and workloads as people write them in TOML; what it did as JSON.
//
// The grammar is what ScenarioHelp prints. Everything that is not in it is an error, which names
// file and line, the key, what is wrong and what there is. Runs are deterministic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "tools/sim/engine/cluster.h"

namespace weir::sim {

struct DeviceSpec {
  std::string name;
  DeviceFactory make;
};

struct WorkloadSpec {
  std::string name;
  ClassId class_id;
  LoadOptions options;
  Duration start{0};
  std::optional<Duration> stop;
  // Threads change while it runs: on / off, or a sine.
  std::optional<Duration> on, off, period;
  int low = 0, high = 0;
};

struct Scenario {
  Duration duration = std::chrono::seconds(30);
  Duration window = std::chrono::seconds(1);
  uint64_t seed = 1;
  SchedulerConfig scheduler;
  std::vector<DeviceSpec> devices;
  std::vector<ClassSpec> classes;
  std::vector<WorkloadSpec> workloads;
};

// kNotFound: no such file; kInvalid: file:line, key, what is wrong, the way out.
Result<Scenario> LoadScenario(const std::string& path);
// `name` stands for the file in messages; traces are looked for beside it.
Result<Scenario> ParseScenario(std::string_view text, const std::string& name);
// Every key, with what it means and an example that runs.
std::string ScenarioHelp();

// Rates and latencies per window. All vectors have one entry per window.
struct Series {
  std::vector<double> bytes_per_s, iops;
  std::vector<double> mean_latency_us, p99_latency_us;  // 0 where nothing completed
};

struct ScenarioResult {
  struct ClassResult {
    std::string name;
    Series all;
    std::vector<std::vector<double>> device_bytes_per_s;  // [device][window]
    double mean_bytes_per_s = 0, mean_iops = 0;
    double p50_us = 0, p99_us = 0;
  };
  struct DeviceResult {
    std::string name;
    Series all;
    double busy = 0;  // part of the time
  };
  std::vector<ClassResult> classes;
  std::vector<DeviceResult> devices;
};

ScenarioResult RunScenario(const Scenario& scenario);

}  // namespace weir::sim
