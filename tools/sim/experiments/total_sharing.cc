// E3, E4: shares of the total over two bricks, DSFQ figure 9.
#include <array>

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/oracles/water_filling.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 30s, kTo = 150s;

struct Shares {
  double f = 0, g_a = 0, g_b = 0;  // MB/s
  [[nodiscard]] double g() const { return g_a + g_b; }
};

// f on A only; g on A, and on B with that many threads.
Shares TwoBricks(Run& run, int g_threads_on_b) {
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  for (int i = 0; i < 2; ++i) cluster.AddOsd(config, Slots(kBrickDepth, kBrickRate));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF, 1));
  cluster.SetClass(Spec(kG, 1));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 30, .shape = FilesOf(1, 16)});
  Load* g = cluster.Start({.class_id = kG, .outstanding = 30, .shape = FilesOf(1, 16)});
  Load* more = cluster.Start(
      {.class_id = kG, .outstanding = g_threads_on_b, .osd = 1, .shape = FilesOf(1, 16)});
  cluster.RunTo(kTo);
  return {f->Rate(kFrom, kTo) / kMB, g->Rate(kFrom, kTo) / kMB, more->Rate(kFrom, kTo) / kMB};
}

void RunTotal(Run& run) {
  Figure figure{
      "Total sharing 1:1, f on brick A, g on A and B",
      "g on B, MB/s",
      "MB/s",
      {{"f", {}, {}}, {"g on A", {}, {}}, {"g in all", {}, {}}, {"theorem 3", {}, {}, true}}};
  for (int threads : {0, 4, 8, 12, 16}) {
    const Shares s = TwoBricks(run, threads);
    const std::vector<double> expected = WaterFill(kBrickRate / kMB, {1, 1}, {0, s.g_b});
    const std::string at = ", g with " + std::to_string(threads) + " threads on B";
    run.Near("g : f in all" + at, s.g() / s.f, 1, .03);
    run.NearPart("f, MB/s" + at, s.f, expected[0], .03);
    const std::vector<double> values{s.f, s.g_a, s.g(), expected[0]};
    for (size_t i = 0; i < values.size(); ++i) {
      figure.curves[i].x.push_back(s.g_b);
      figure.curves[i].y.push_back(values[i]);
    }
  }
  const Shares all_of_b = TwoBricks(run, 20);
  run.AtMost("g on A when it has all of B, MB/s (goes to 0 slowly, A5)", all_of_b.g_a, .6, 0);
  run.Draw(std::move(figure));
}

constexpr double kBigRate = 200 * kMB;

// Figure 9(b): weights 1 : 4, files up to 1 MB, and g paced to that many bytes per second on B.
Shares BigFiles(Run& run, double g_on_b) {
  constexpr uint64_t kMeanBytes = 1025 * kKiB / 2;
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  for (int i = 0; i < 2; ++i) cluster.AddOsd(config, Slots(kBrickDepth, kBigRate));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF, 1));
  cluster.SetClass(Spec(kG, 4));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 40, .shape = FilesOf(1, 1024)});
  Load* g = cluster.Start({.class_id = kG, .outstanding = 40, .shape = FilesOf(1, 1024)});
  Load* more = nullptr;
  if (g_on_b > 0) {
    more = cluster.Start({.class_id = kG,
                          .outstanding = 60,
                          .bytes = kMeanBytes,
                          .osd = 1,
                          .pace = g_on_b,
                          .shape = FilesOf(1, 1024)});
  }
  cluster.RunTo(3 * kTo);
  const double on_b = more == nullptr ? 0 : more->Rate(kFrom, 3 * kTo) / kMB;
  return {f->Rate(kFrom, 3 * kTo) / kMB, g->Rate(kFrom, 3 * kTo) / kMB, on_b};
}

void RunWeighted(Run& run) {
  Figure figure{"Total sharing 1:4, files to 1 MB",
                "g on B, MB/s",
                "MB/s",
                {{"f", {}, {}},
                 {"g on A", {}, {}},
                 {"f, paper", {0, 175}, {40, 75}, true},
                 {"g on A, paper", {0, 175}, {160, 125}, true}}};
  const std::vector<std::array<double, 3>> paper{
      {0, 40, 160}, {50, 50, 150}, {100, 60, 140}, {175, 75, 125}};
  for (const auto& [on_b, f, g_a] : paper) {
    const Shares s = BigFiles(run, on_b * kMB);
    const std::string at = ", g on B " + std::to_string(static_cast<int>(on_b)) + " MB/s";
    run.NearPart("f, MB/s" + at, s.f, f, .03);
    run.NearPart("g on A, MB/s" + at, s.g_a, g_a, .03);
    run.Near("g : f in all" + at, s.g() / s.f, 4, .05);
    figure.curves[0].x.push_back(s.g_b);
    figure.curves[0].y.push_back(s.f);
    figure.curves[1].x.push_back(s.g_b);
    figure.curves[1].y.push_back(s.g_a);
  }
  run.Draw(std::move(figure));
}

}  // namespace

void AddTotalSharing(std::vector<Experiment>* all) {
  all->push_back(
      {"E3", "Total sharing 1:1 over two bricks", "DSFQ figure 9(a)",
       "f on A only, g on A and B, 30 threads each on A; g adds threads on B. What g gets "
       "on B is taken from it on A, so that the totals stay equal (theorem 3), as long as "
       "B gives no more than A.",
       RunTotal});
  all->push_back(
      {"E4", "Total sharing 1:4, files to 1 MB", "DSFQ figure 9(b)",
       "Bricks of 200 MB/s, g is given 0 to 175 MB/s on B: f goes from 40 to 75 MB/s, g on "
       "A from 160 to 125, and the totals stay 1 : 4.",
       RunWeighted});
}

}  // namespace weir::sim
