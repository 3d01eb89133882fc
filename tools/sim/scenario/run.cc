#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <set>

#include "tools/sim/scenario/admission.h"
#include "tools/sim/scenario/scenario.h"
#include "tools/sim/scenario/tier_loop.h"

namespace weir::sim {
namespace {

struct Started {
  const WorkloadSpec* spec;
  Load* load;
};

// What completed in one window of one class or device.
struct Window {
  double bytes = 0;
  double count = 0;
  std::vector<double> latencies;  // s
};

class Collector {
 public:
  Collector(size_t windows, Duration window) : windows_(windows), window_(window) {}

  void Add(const Completion& done) {
    const auto at = static_cast<size_t>((done.when - TimePoint{0}) / window_);
    if (at >= windows_.size()) return;
    Window& window = windows_[at];
    window.bytes += static_cast<double>(done.bytes);
    window.count += 1;
    window.latencies.push_back(ToSeconds(done.when - done.sent));
  }

  [[nodiscard]] Series ToSeries() const {
    Series series;
    const double seconds = ToSeconds(window_);
    for (const Window& window : windows_) {
      series.bytes_per_s.push_back(window.bytes / seconds);
      series.iops.push_back(window.count / seconds);
      series.mean_latency_us.push_back(Mean(window.latencies) * 1e6);
      series.p99_latency_us.push_back(Quantile(window.latencies, .99) * 1e6);
    }
    return series;
  }
  [[nodiscard]] std::vector<double> AllLatencies() const {
    std::vector<double> all;
    for (const Window& window : windows_) {
      all.insert(all.end(), window.latencies.begin(), window.latencies.end());
    }
    return all;
  }

 private:
  std::vector<Window> windows_;
  Duration window_;
};

void ChangeThreads(Cluster* cluster, const Scenario& scenario, const WorkloadSpec& spec,
                   Load* load) {
  const Duration end = spec.stop.value_or(scenario.duration);
  const int threads = spec.options.outstanding;
  if (spec.on) {
    for (Duration at = spec.start + *spec.on; at < end; at += *spec.on + *spec.off) {
      cluster->At(at, [=] { load->SetOutstanding(0); });
      if (at + *spec.off < end) cluster->At(at + *spec.off, [=] { load->SetOutstanding(threads); });
    }
  }
  if (spec.period) {
    const Duration step = std::max(*spec.period / 100, Duration(1'000'000));
    for (Duration at = spec.start; at < end; at += step) {
      const double angle =
          2 * std::numbers::pi * (ToSeconds(at - spec.start) / ToSeconds(*spec.period));
      const double part = (1 - std::cos(angle)) / 2;
      const int now = spec.low + static_cast<int>(std::lround(part * (spec.high - spec.low)));
      cluster->At(at, [=] { load->SetOutstanding(now); });
    }
  }
  if (spec.stop) cluster->At(*spec.stop, [=] { load->Stop(); });
}

// The scenario while it runs.
class Running {
 public:
  explicit Running(const Scenario& scenario)
      : scenario_(scenario), cluster_(scenario.seed), desk_(&cluster_, scenario.scheduler) {
    if (scenario.mounts_hold_limits) cluster_.DivideLimits();
    for (const DeviceSpec& device : scenario.devices) {
      cluster_.AddOsd(scenario.scheduler, device.make);
    }
    for (size_t i = 0; i < scenario.devices.size(); ++i) {
      const std::vector<TierSpec>& tiers = scenario.devices[i].tiers;
      if (tiers.empty()) continue;
      loops_[i] = std::make_unique<TierLoop>(&cluster_, i, tiers, scenario.scheduler.allocation);
    }
    for (size_t i = 0; i < scenario.classes.size(); ++i) Admit(i);
    for (const WorkloadSpec& spec : scenario.workloads) {
      cluster_.At(spec.start, [this, &spec] { Start(spec); });
    }
    cluster_.RunTo(scenario.duration);
  }

  [[nodiscard]] ScenarioResult Result();

 private:
  // Now, or when it asks.
  void Admit(size_t index) {
    const ClassSpec& spec = scenario_.classes[index];
    const ClassAdmission& admission = scenario_.admissions[index];
    if (!admission.kind) {
      desk_.Take(spec);
      return Enter(spec);
    }
    cluster_.At(admission.at, [this, &spec, kind = *admission.kind] {
      admissions_.push_back(desk_.Ask(spec, kind));
      if (admissions_.back().admitted) {
        Enter(spec);
      } else {
        refused_.insert(spec.id);
      }
    });
  }
  void Enter(const ClassSpec& spec) {
    cluster_.SetClass(spec);
    for (auto& [osd, loop] : loops_) loop->Add(spec);
  }
  void Start(const WorkloadSpec& spec) {
    if (refused_.contains(spec.class_id)) return;
    Load* load = cluster_.Start(spec.options);
    started_.push_back({&spec, load});
    ChangeThreads(&cluster_, scenario_, spec, load);
  }
  [[nodiscard]] ScenarioResult::ClassResult ClassOf(ClassId id,
                                                    const std::vector<Collector>& collectors) const;
  [[nodiscard]] ScenarioResult::DeviceResult DeviceOf(size_t index, const Collector& collector);

  const Scenario& scenario_;
  Cluster cluster_;
  AdmissionDesk desk_;
  std::map<size_t, std::unique_ptr<TierLoop>> loops_;  // by OSD
  std::set<ClassId> refused_;
  std::vector<ScenarioResult::AdmissionResult> admissions_;
  std::vector<Started> started_;
};

ScenarioResult::ClassResult Running::ClassOf(ClassId id,
                                             const std::vector<Collector>& collectors) const {
  ScenarioResult::ClassResult result;
  const ClassSpec* spec = scenario_.Find(id);
  result.name = spec == nullptr ? "best-effort" : spec->name;
  result.all = collectors[0].ToSeries();
  for (size_t i = 1; i < collectors.size(); ++i) {
    result.device_bytes_per_s.push_back(collectors[i].ToSeries().bytes_per_s);
  }
  result.mean_bytes_per_s = Mean(result.all.bytes_per_s);
  result.mean_iops = Mean(result.all.iops);
  const std::vector<double> latencies = collectors[0].AllLatencies();
  result.p50_us = Quantile(latencies, .5) * 1e6;
  result.p99_us = Quantile(latencies, .99) * 1e6;
  return result;
}

ScenarioResult::DeviceResult Running::DeviceOf(size_t index, const Collector& collector) {
  const double seconds = ToSeconds(scenario_.duration);
  const DeviceSpec& spec = scenario_.devices[index];
  ScenarioResult::DeviceResult result{spec.name, collector.ToSeries(), 0, {}};
  result.busy = ToSeconds(cluster_.osd(index).busy_time()) / seconds;
  for (size_t k = 0; k < spec.tiers.size(); ++k) {
    const TieredDevice& device = loops_[index]->device();
    result.tiers.push_back({spec.tiers[k].name, static_cast<double>(device.completed(k)) / seconds,
                            ToSeconds(device.busy(k)) / seconds});
  }
  return result;
}

ScenarioResult Running::Result() {
  const auto windows =
      static_cast<size_t>((scenario_.duration + scenario_.window - Duration(1)) / scenario_.window);
  const Collector empty(windows, scenario_.window);
  std::vector<Collector> by_device(scenario_.devices.size(), empty);
  std::map<ClassId, std::vector<Collector>> by_class;  // all first, then each device
  for (const Started& one : started_) {
    auto& of_class =
        by_class.try_emplace(one.spec->class_id, scenario_.devices.size() + 1, empty).first->second;
    for (const Completion& done : one.load->completions()) {
      by_device[done.osd].Add(done);
      of_class[0].Add(done);
      of_class[done.osd + 1].Add(done);
    }
  }
  ScenarioResult result;
  for (const auto& [id, collectors] : by_class) {
    result.classes.push_back(ClassOf(id, collectors));
  }
  for (size_t i = 0; i < scenario_.devices.size(); ++i) {
    result.devices.push_back(DeviceOf(i, by_device[i]));
  }
  result.admissions = std::move(admissions_);
  return result;
}

}  // namespace

const ClassSpec* Scenario::Find(ClassId id) const {
  for (const ClassSpec& spec : classes) {
    if (spec.id == id) return &spec;
  }
  return nullptr;
}

ScenarioResult RunScenario(const Scenario& scenario) {
  return Running(scenario).Result();
}

}  // namespace weir::sim
