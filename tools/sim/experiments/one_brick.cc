// E2: two streams on one brick, DSFQ figure 8.
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 10s, kTo = 90s;

struct Point {
  double f = 0, g = 0;   // bytes per second
  double g_latency = 0;  // seconds
  int64_t largest_delay = 0;
};

// f with 30 threads, g with n; weights 1 : 2.
Point Measure(Run& run, int threads) {
  Cluster cluster(run.seed());
  SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  if (run.broken(Fault::kSharesOff)) config.surplus = SurplusKind::kFcfs;
  cluster.AddOsd(config, Slots(kBrickDepth, kBrickRate));
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF, 1));
  cluster.SetClass(Spec(kG, 2));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 30, .shape = FilesOf(1, 16)});
  Load* g = cluster.Start({.class_id = kG, .outstanding = threads, .shape = FilesOf(1, 16)});
  cluster.RunTo(kTo);
  return {f->Rate(kFrom, kTo), g->Rate(kFrom, kTo), g->MeanLatency(kFrom, kTo),
          std::max(f->largest_delay(), g->largest_delay())};
}

void Draw(Run& run, const std::vector<Point>& points) {
  Figure rates{"Throughput of f (30 threads) and g on one brick, weights 1:2",
               "threads of g",
               "KB/s",
               {{"f", {}, {}}, {"g", {}, {}}, {"2/3 of the brick", {0, 20}, {4000, 4000}, true}}};
  Figure latency{"Latency of g", "threads of g", "ms", {{"g", {}, {}}}};
  for (size_t n = 0; n < points.size(); ++n) {
    rates.curves[0].x.push_back(static_cast<double>(n));
    rates.curves[0].y.push_back(points[n].f / 1e3);
    rates.curves[1].x.push_back(static_cast<double>(n));
    rates.curves[1].y.push_back(points[n].g / 1e3);
    if (n == 0) continue;
    latency.curves[0].x.push_back(static_cast<double>(n));
    latency.curves[0].y.push_back(points[n].g_latency * 1e3);
  }
  run.Draw(std::move(rates));
  run.Draw(std::move(latency));
}

void RunOneBrick(Run& run) {
  std::vector<Point> points;
  for (int n = 0; n <= 20; ++n) points.push_back(Measure(run, n));
  int64_t largest_delay = 0;
  int knee = 0;
  double mean_latency = 0;
  for (int n = 0; n <= 20; ++n) {
    const Point& p = points[static_cast<size_t>(n)];
    largest_delay = std::max(largest_delay, p.largest_delay);
    if (knee == 0 && p.g / (p.f + p.g) >= 0.64) knee = n;
    if (n >= 1 && n <= 11) mean_latency += p.g_latency / 11;
  }
  run.Near("largest delay (one brick: none)", static_cast<double>(largest_delay), 0, 0);
  run.Between("threads of g from which it has 64 % of the brick", knee, 12, 16, 13);
  run.Near("share of g at 20 threads", points[20].g / (points[20].f + points[20].g), 2.0 / 3, .02);
  run.Near("share of f at 20 threads", points[20].f / (points[20].f + points[20].g), 1.0 / 3, .02);
  double furthest = 1;
  for (size_t n = 1; n <= 11; ++n) {
    const double part = points[n].g_latency / mean_latency;
    if (std::abs(part - 1) > std::abs(furthest - 1)) furthest = part;
  }
  run.Near("latency of g at 1 to 11 threads: furthest from its mean", furthest, 1, .1);
  run.AtLeast("latency of g at 20 threads over 5", points[20].g_latency / points[5].g_latency, 1.25,
              43.0 / 30);
  run.Near("throughput of f at 20 threads of g over 16", points[20].f / points[16].f, 1, .05);
  const std::vector<std::pair<size_t, double>> derived{
      {5, 1425}, {9, 2553}, {13, 3525}, {20, 3984}};
  for (const auto& [n, rate] : derived) {
    run.Report("g at " + std::to_string(n) + " threads, KB/s", points[n].g / 1e3, rate);
  }
  Draw(run, points);
}

}  // namespace

void AddOneBrick(std::vector<Experiment>* all) {
  all->push_back(
      {"E2", "Two streams on one brick, weights 1:2", "DSFQ figure 8",
       "f has 30 threads, g 0 to 20, files of 1 to 16 KB, a brick of 6 MB/s that needs "
       "20 requests to be busy. g grows until it has its two thirds (about 13 threads), "
       "its latency flat until then; after that its latency grows and f is not affected.",
       RunOneBrick});
}

}  // namespace weir::sim
