// E52: all control loops at once: bandwidth maximizer, BAA, measured service times, measured
// admission. They must not chase one another.
#include <algorithm>
#include <array>

#include "osd/qos/admission/service_monitor.h"
#include "osd/qos/control/bottleneck_aware.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/aqua_setup.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::BottleneckAware;
using osd::qos::ServiceMonitor;
using osd::qos::TierActivity;

constexpr Duration kSettled = 60s, kSteady = 160s, kEnd = 190s;
// The queues of a closed loop wander for a minute at a time: over so long they average out. The
// window of a daemon is an hour.
constexpr Duration kMonitorWindow = 120s;
constexpr int kClusters = 100;
constexpr uint64_t kBlock = 512 * kKiB;
constexpr std::array<double, 2> kDeviceRate{60, 300};           // MiB/s: a disk, a flash disk
constexpr std::array<uint64_t, 2> kBaseRate{kGlobalRate, 200};  // G0 of each
constexpr std::array<double, 3> kHits{.3, .5, .8};  // part of a writer's blocks on flash
constexpr int kOutstanding = 32;

// How often a series turns round by more than the part `least`: its last turn is where it was
// highest or lowest before it came back that far.
int Turns(const std::vector<double>& values, double least) {
  int turns = 0, direction = 0;
  double low = values.front(), high = values.front();
  for (const double value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
    const bool falls = direction >= 0 && value < high * (1 - least);
    const bool rises = direction <= 0 && value > low * (1 + least);
    if (!falls && !rises) continue;
    if (direction != 0) ++turns;
    direction = rises ? 1 : -1;
    low = high = value;
  }
  return turns;
}

SchedulerConfig LoopsConfig(const Run& run, size_t tier) {
  SchedulerConfig config = OdisFor(run, true);
  config.token_rate = kBaseRate[tier] * kMiB;
  config.surplus = SurplusKind::kDsfq;
  config.sharing = SharingKind::kHybridH;
  config.dispatch = DispatchKind::kCvc;  // with the measured 90th percentile as estimate
  config.depth = 4;
  return config;
}

// Two OSDs of different tiers, three promised writers on both, and the loops around them.
class LoopedCluster {
 public:
  LoopedCluster(const Run& run, uint64_t seed)
      : cluster_(seed), baa_(BaaOptions(run), TimePoint{}), monitor_(kMonitorWindow, TimePoint{}) {
    for (size_t tier = 0; tier < 2; ++tier) {
      SimOsd& osd = cluster_.AddOsd(LoopsConfig(run, tier),
                                    Flat(kDeviceRate[tier] * static_cast<double>(kMiB)));
      osd.on_completion = [this, tier](const Job& job) { Done(tier, job); };
    }
    SilenceBestEffort(&cluster_);
    for (size_t i = 0; i < 3; ++i) SetWriter(i, 1);
    for (size_t i = 0; i < 3; ++i) StartWriters(i);
    Watch();
    // What was measured while rates and weights still moved counts for nothing (C15).
    cluster_.At(kSettled / 2, [this] { monitor_.Restart(cluster_.events().now()); });
    cluster_.RunTo(kEnd);
  }

  [[nodiscard]] double OnDisk(size_t i, Duration from, Duration to) const {
    return loads_[i]->MiBps(from, to, 0);
  }
  [[nodiscard]] const std::vector<double>& rates(size_t tier) const { return rates_[tier]; }
  [[nodiscard]] const std::vector<double>& weights(size_t i) const { return weights_[i]; }
  [[nodiscard]] const std::vector<double>& service_parts() const { return service_parts_; }
  [[nodiscard]] bool stable() const { return monitor_.Stable(); }

 private:
  static BottleneckAware::Options BaaOptions(const Run& run) {
    BottleneckAware::Options options;
    options.tiers = {.count = 2, .capacity = {}};
    for (size_t k = 0; k < 2; ++k) {
      options.tiers.capacity[k] = kDeviceRate[k] * static_cast<double>(kMiB) / kBlock;
    }
    options.period = 10s;
    options.window = {.requests = 0, .span = run.broken(Fault::kWindowShort) ? Duration(1s) : 60s};
    return options;
  }

  void SetWriter(size_t i, double weight) {
    weight_[i] = weight;
    ClassSpec spec = Reserved(WriterId(i), kPromised[i] * kMiB, weight);
    cluster_.osd(0).policy().SetClass(spec, cluster_.events().now());
    cluster_.osd(1).policy().SetClass(Spec(WriterId(i), weight), cluster_.events().now());
    for (size_t tier = 0; tier < 2; ++tier) cluster_.osd(tier).Pump();
  }

  void StartWriters(size_t i) {
    loads_.push_back(cluster_.Start({.class_id = WriterId(i),
                                     .outstanding = kOutstanding,
                                     .bytes = kBlock,
                                     .shape = [this, i](Prng& prng, uint64_t, Io* io) {
                                       io->osd = prng.Chance(kHits[i]) ? 1 : 0;
                                       io->lba = prng.Uniform(0, 1 << 20) * kBlock;
                                       baa_.Count(WriterId(i), io->osd, cluster_.events().now());
                                     }}));
  }

  // What the worst-case delay by equation (10) is on the disk, and how much of it was needed.
  void Done(size_t tier, const Job& job) {
    ++completed_[tier];
    if (tier != 0) return;
    const size_t i = job.request.class_id.value - WriterId(0).value;
    const double iops = static_cast<double>(kPromised[i] * kMiB) / kBlock;
    const double worst = (kOutstanding + 1) / iops;
    const double delay = ToSeconds(cluster_.events().now() - job.sent);
    monitor_.NoteDelay(delay / worst, cluster_.events().now());
  }

  // Once a second: what the loops did, and BAA's turn.
  void Watch() {
    cluster_.events().After(1s, [this] {
      std::vector<TierActivity> activity;
      for (size_t tier = 0; tier < 2; ++tier) {
        const Duration busy = cluster_.osd(tier).busy_time();
        activity.push_back({completed_[tier] - seen_[tier], busy - busy_[tier]});
        seen_[tier] = completed_[tier];
        busy_[tier] = busy;
        rates_[tier].push_back(
            static_cast<double>(cluster_.osd(tier).scheduler().State({}).token_rate));
      }
      baa_.Observe(activity, cluster_.events().now());
      for (const auto& [id, weight] : baa_.Tick(cluster_.events().now())) {
        SetWriter(id.value - WriterId(0).value, weight);
      }
      for (size_t i = 0; i < 3; ++i) weights_[i].push_back(weight_[i]);
      service_parts_.push_back(monitor_.ServicePart(.95));
      Watch();
    });
  }

  Cluster cluster_;
  BottleneckAware baa_;
  ServiceMonitor monitor_;
  std::vector<Load*> loads_;
  std::array<double, 3> weight_{};
  std::array<uint64_t, 2> completed_{}, seen_{};
  std::array<Duration, 2> busy_{};
  std::array<std::vector<double>, 2> rates_;
  std::array<std::vector<double>, 3> weights_;
  std::vector<double> service_parts_;
};

std::vector<double> Settled(const std::vector<double>& values) {
  return {values.begin() + kSettled / 1s, values.begin() + kSteady / 1s};
}

// The worst of many clusters.
struct Worst {
  int rate_turns[2] = {};
  double least_rate[2] = {kUnbounded, kUnbounded};
  double last_rate_low[2] = {kUnbounded, kUnbounded}, last_rate_high[2] = {};
  int weight_turns[3] = {};
  double promise[3] = {kUnbounded, kUnbounded, kUnbounded};
  double spread = 0;
  int stable = 0;

  void Add(const LoopedCluster& loops) {
    for (size_t tier = 0; tier < 2; ++tier) {
      const std::vector<double>& rates = loops.rates(tier);
      rate_turns[tier] = std::max(rate_turns[tier], Turns(Settled(rates), 0));
      const auto mib = [](double rate) { return rate / static_cast<double>(kMiB); };
      least_rate[tier] =
          std::min(least_rate[tier], mib(*std::min_element(rates.begin(), rates.end())));
      last_rate_low[tier] = std::min(last_rate_low[tier], mib(rates.back()));
      last_rate_high[tier] = std::max(last_rate_high[tier], mib(rates.back()));
    }
    for (size_t i = 0; i < 3; ++i) {
      weight_turns[i] = std::max(weight_turns[i], Turns(Settled(loops.weights(i)), .05));
      for (Duration at = kSettled; at + 10s <= kEnd; at += 10s) {
        promise[i] =
            std::min(promise[i], loops.OnDisk(i, at, at + 10s) / static_cast<double>(kPromised[i]));
      }
    }
    const std::vector<double> parts = Settled(loops.service_parts());
    spread = std::max(spread, *std::max_element(parts.begin(), parts.end()) -
                                  *std::min_element(parts.begin(), parts.end()));
    stable += loops.stable() ? 1 : 0;
  }
};

void DrawLoops(Run& run, const LoopedCluster& loops) {
  Figure figure{"Control loops at constant load", "s", "of the first value", {}};
  const auto draw = [&](const std::string& name, const std::vector<double>& values) {
    Curve curve{name, {}, {}};
    for (size_t i = 0; i < values.size(); ++i) {
      curve.x.push_back(static_cast<double>(i + 1));
      curve.y.push_back(values[i] / values.front());
    }
    figure.curves.push_back(std::move(curve));
  };
  draw("G of the disk", loops.rates(0));
  draw("G of the flash disk", loops.rates(1));
  for (size_t i = 0; i < 3; ++i) draw("weight " + std::to_string(i + 1), loops.weights(i));
  run.Draw(std::move(figure));
}

void RunLoops(Run& run) {
  Worst worst;
  for (int i = 0; i < kClusters; ++i) {
    const LoopedCluster loops(run, MixHash(run.seed(), static_cast<uint64_t>(i)));
    worst.Add(loops);
    if (i == 0) DrawLoops(run, loops);
  }
  for (size_t tier = 0; tier < 2; ++tier) {
    const std::string name = tier == 0 ? "disk" : "flash disk";
    const auto base = static_cast<double>(kBaseRate[tier]);
    run.AtMost("most turns of G in 100 s at constant load, " + name, worst.rate_turns[tier], 3);
    run.AtLeast("G never below G0, " + name + ", MiB/s", worst.least_rate[tier], base);
    // The flash disk is not full: nothing asks its G to rise.
    run.AtLeast("lowest G at the end, " + name + ", MiB/s", worst.last_rate_low[tier],
                tier == 0 ? kDeviceRate[0] * .9 : base);
    run.AtMost("highest G at the end, " + name + ", MiB/s", worst.last_rate_high[tier],
               kDeviceRate[tier] * 1.15, kDeviceRate[tier]);
  }
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = ", writer " + std::to_string(i + 1);
    run.AtMost("most turns of its weight by 5 % or more in 100 s" + name, worst.weight_turns[i], 3);
    run.AtLeast("least part of its promise on the disk in 10 s" + name, worst.promise[i], .97, 1);
  }
  run.AtMost("largest spread of Q_service(.95), what admission measures", worst.spread, .15);
  run.AtLeast("clusters of 100 whose measurements are stable at the end", worst.stable, 99, 100);
}

}  // namespace

void AddMixedLoops(std::vector<Experiment>* all) {
  all->push_back(
      {"E52", "All control loops at once", "RULES.md C10, C11 and C15",
       "Maximizer, BAA, the measured estimate of service times and the measurements of "
       "admission run on a disk and a flash disk under three promised writers at constant "
       "load, in a hundred clusters: in the worst of them G and the weights turn round less than "
       "four times in the 100 s after the first minute (weights: by 5 % or more; what a minute of "
       "requests says of a hit ratio varies by 2 %), promises hold in every 10 s, and what "
       "admission measures over two minutes stands still.",
       RunLoops});
}

}  // namespace weir::sim
