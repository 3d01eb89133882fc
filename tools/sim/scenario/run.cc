#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "tools/sim/scenario/scenario.h"

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

}  // namespace

ScenarioResult RunScenario(const Scenario& scenario) {
  Cluster cluster(scenario.seed);
  for (const DeviceSpec& device : scenario.devices) cluster.AddOsd(scenario.scheduler, device.make);
  for (const ClassSpec& spec : scenario.classes) cluster.SetClass(spec);
  std::vector<Started> started;
  started.reserve(scenario.workloads.size());
  for (const WorkloadSpec& spec : scenario.workloads) {
    cluster.At(spec.start, [&cluster, &scenario, &spec, &started] {
      Load* load = cluster.Start(spec.options);
      started.push_back({&spec, load});
      ChangeThreads(&cluster, scenario, spec, load);
    });
  }
  cluster.RunTo(scenario.duration);

  const auto windows =
      static_cast<size_t>((scenario.duration + scenario.window - Duration(1)) / scenario.window);
  const Collector empty(windows, scenario.window);
  std::vector<Collector> by_device(scenario.devices.size(), empty);
  std::map<ClassId, std::vector<Collector>> by_class;  // all first, then each device
  for (const Started& one : started) {
    auto& of_class =
        by_class.try_emplace(one.spec->class_id, scenario.devices.size() + 1, empty).first->second;
    for (const Completion& done : one.load->completions()) {
      by_device[done.osd].Add(done);
      of_class[0].Add(done);
      of_class[done.osd + 1].Add(done);
    }
  }

  ScenarioResult result;
  for (const auto& [id, collectors] : by_class) {
    ScenarioResult::ClassResult of_class;
    of_class.name = "best-effort";
    for (const ClassSpec& spec : scenario.classes) {
      if (spec.id == id) of_class.name = spec.name;
    }
    of_class.all = collectors[0].ToSeries();
    for (size_t i = 1; i < collectors.size(); ++i) {
      of_class.device_bytes_per_s.push_back(collectors[i].ToSeries().bytes_per_s);
    }
    of_class.mean_bytes_per_s = Mean(of_class.all.bytes_per_s);
    of_class.mean_iops = Mean(of_class.all.iops);
    const std::vector<double> latencies = collectors[0].AllLatencies();
    of_class.p50_us = Quantile(latencies, .5) * 1e6;
    of_class.p99_us = Quantile(latencies, .99) * 1e6;
    result.classes.push_back(std::move(of_class));
  }
  for (size_t i = 0; i < scenario.devices.size(); ++i) {
    const double busy = ToSeconds(cluster.osd(i).busy_time()) / ToSeconds(scenario.duration);
    result.devices.push_back({scenario.devices[i].name, by_device[i].ToSeries(), busy});
  }
  return result;
}

}  // namespace weir::sim
