// E9: loads that rise and fall, DSFQ figure 14.
#include <map>
#include <numbers>

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kEnd = 300s;
constexpr Duration kWarmUp = 10s;
constexpr Duration kWindow = 5s;
constexpr double kElseRate = 3.5 * kMB;
constexpr double kMinimum = 1.0 / 12;

// Threads of a load at a moment: between `low` and `high`, once round in `period` seconds.
struct Wave {
  double low, high, period, phase;
  [[nodiscard]] int At(double seconds) const {
    const double angle = 2 * std::numbers::pi * seconds / period + phase;
    return static_cast<int>(std::lround(low + (high - low) * (1 + std::sin(angle)) / 2));
  }
};

struct Panel {
  double deviation = 0;        // mean of |Rf - Rg| / (Rf + Rg) where theorem 3 allows equality
  double least_share = 1;      // smallest share of A in a window, of f or g
  double share_deviation = 0;  // how far from 1/2 the shares of A are, mean
  std::vector<double> f, g;    // MB/s per window
};

void Follow(Cluster* cluster, Load* load, const Wave& wave) {
  for (Duration at = 0s; at < kEnd; at += 1s) {
    cluster->At(at, [=] { load->SetOutstanding(wave.At(ToSeconds(at))); });
  }
}

Panel Measure(Run& run, std::string_view profile) {
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf(profile, kBrickDepth);
  cluster.AddOsd(config, Slots(kBrickDepth, kBrickRate));
  for (int i = 0; i < 4; ++i) cluster.AddOsd(config, Slots(10, kElseRate));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  for (ClassId id : {kF, kG}) {
    ClassSpec spec = Spec(id, .5);
    spec.min_weight = run.broken(Fault::kMinimumOff) ? 1e-9 : kMinimum;
    cluster.SetClass(spec);
  }
  const auto start = [&](ClassId id, size_t osd, const Wave& wave) {
    Load* load =
        cluster.Start({.class_id = id, .outstanding = 0, .osd = osd, .shape = FilesOf(1, 16)});
    Follow(&cluster, load, wave);
    return load;
  };
  Load* f_a = start(kF, 0, {15, 35, 150, 0});
  Load* g_a = start(kG, 0, {15, 35, 110, 0});
  const std::vector<Load*> f_else{start(kF, 1, {0, 10, 150, 0}), start(kF, 2, {0, 10, 150, 0.3})};
  const std::vector<Load*> g_else{start(kG, 3, {0, 10, 110, 2}), start(kG, 4, {0, 10, 110, 2.3})};
  cluster.RunTo(kEnd);

  Panel panel;
  double windows = 0;
  double all_windows = 0;
  for (Duration at = kWarmUp; at + kWindow <= kEnd; at += kWindow) {
    const double f_here = f_a->Rate(at, at + kWindow) / kMB;
    const double g_here = g_a->Rate(at, at + kWindow) / kMB;
    double f_there = 0;
    double g_there = 0;
    for (const Load* load : f_else) f_there += load->Rate(at, at + kWindow) / kMB;
    for (const Load* load : g_else) g_there += load->Rate(at, at + kWindow) / kMB;
    const double share = f_here / (f_here + g_here);
    panel.least_share = std::min({panel.least_share, share, 1 - share});
    panel.share_deviation += std::abs(share - .5);
    ++all_windows;
    panel.f.push_back(f_here + f_there);
    panel.g.push_back(g_here + g_there);
    // Equal totals need a difference elsewhere that A can make up for.
    if (std::abs(f_there - g_there) > .9 * kBrickRate / kMB) continue;
    const double f_all = f_here + f_there;
    const double g_all = g_here + g_there;
    panel.deviation += std::abs(f_all - g_all) / (f_all + g_all);
    ++windows;
  }
  panel.deviation /= windows;
  panel.share_deviation /= all_windows;
  return panel;
}

void RunWaves(Run& run) {
  const std::vector<std::string_view> profiles{"noqos", "sfq", "dsfq-total", "dsfq-hybrid",
                                               "dsfq-hybrid-h"};
  std::map<std::string_view, Panel> panels;
  for (std::string_view profile : profiles) {
    const Panel& panel = panels[profile] = Measure(run, profile);
    Figure figure{"Totals under " + std::string(profile),
                  "s",
                  "MB/s",
                  {{"f", {}, panel.f}, {"g", {}, panel.g}}};
    for (size_t i = 0; i < panel.f.size(); ++i) {
      for (Curve& curve : figure.curves) {
        curve.x.push_back(ToSeconds(kWarmUp + kWindow * static_cast<int64_t>(i)));
      }
    }
    run.Draw(std::move(figure));
  }
  const double total = panels["dsfq-total"].deviation;
  run.AtMost("deviation of totals, TOTAL", total, .05, .007);
  run.AtLeast("deviation, no scheduler over TOTAL", panels["noqos"].deviation / total, 2);
  run.AtLeast("deviation, SFQ per brick over TOTAL", panels["sfq"].deviation / total, 2);
  run.Between("deviation, HYBRID (between TOTAL and SFQ)", panels["dsfq-hybrid"].deviation, total,
              panels["sfq"].deviation, .069);
  run.AtMost("deviation, HYBRID-H (below HYBRID)", panels["dsfq-hybrid-h"].deviation,
             panels["dsfq-hybrid"].deviation, .029);
  run.AtMost("smallest share of A in 5 s, TOTAL", panels["dsfq-total"].least_share, .03, .019);
  run.AtLeast("smallest share of A in 5 s, HYBRID", panels["dsfq-hybrid"].least_share,
              kMinimum - .02);
  run.AtLeast("smallest share of A in 5 s, HYBRID-H", panels["dsfq-hybrid-h"].least_share,
              kMinimum - .02);
  run.AtMost("share of A off one half, SFQ", panels["sfq"].share_deviation, .05);
}

}  // namespace

void AddWaves(std::vector<Experiment>* all) {
  all->push_back(
      {"E9", "Loads that rise and fall", "DSFQ figure 14",
       "f on A, B, C and g on A, D, E, threads going up and down with different periods. "
       "Without a scheduler and with SFQ per brick the totals differ; TOTAL keeps them equal "
       "wherever theorem 3 allows, at the price of blocking a stream on A at times; HYBRID "
       "never does that. Deviations are means over 5 s windows where equality is possible.",
       RunWaves});
}

}  // namespace weir::sim
