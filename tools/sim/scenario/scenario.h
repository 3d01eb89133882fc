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

struct TierSpec {
  std::string name;
  double capacity = 0;  // requests/s that allocation counts with; 0: measured
};

struct DeviceSpec {
  std::string name;
  DeviceFactory make;
  std::vector<TierSpec> tiers;  // empty: a device of one part
};

// What a class goes through before its workloads may begin.
struct ClassAdmission {
  std::optional<AdmissionKind> kind;  // none: it is there from the start
  Duration at{0};
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
  std::vector<ClassAdmission> admissions;  // one for each class
  std::vector<WorkloadSpec> workloads;
  bool mounts_hold_limits = true;

  [[nodiscard]] const ClassSpec* Find(ClassId id) const;
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
  struct TierResult {
    std::string name;
    double iops = 0;
    double busy = 0;
  };
  struct DeviceResult {
    std::string name;
    Series all;
    double busy = 0;  // part of the time
    std::vector<TierResult> tiers;
  };
  // One that asked: in requests per second of the OSD that said no, or of the last.
  struct AdmissionResult {
    std::string name;
    bool admitted = false;
    bool measured = false;  // by stable measurements
    double needed = 0;      // for it
    double reserved = 0;    // with it
    double limit = 0;       // that may be
    std::string why;        // when refused
  };
  std::vector<ClassResult> classes;
  std::vector<DeviceResult> devices;
  std::vector<AdmissionResult> admissions;
};

ScenarioResult RunScenario(const Scenario& scenario);

}  // namespace weir::sim
