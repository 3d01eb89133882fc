// E5: a stream striped over three bricks, DSFQ figure 10.
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 20s, kTo = 140s;

struct Point {
  double f = 0;
  double g[3] = {};  // MB/s on each brick
  [[nodiscard]] double ratio() const { return (g[0] + g[1] + g[2]) / f; }
};

// f with 30 threads on brick 0; g with n threads, one stripe unit after the other on bricks 0 1 2.
Point Measure(Run& run, int threads, const DeviceFactory& device) {
  Cluster cluster(run.seed());
  SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  if (run.broken(Fault::kSharesOff)) config.surplus = SurplusKind::kFcfs;
  for (int i = 0; i < 3; ++i) cluster.AddOsd(config, device);
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF));
  cluster.SetClass(Spec(kG));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 30, .shape = FilesOf(1, 16)});
  Load* g = cluster.Start({.class_id = kG,
                           .outstanding = threads,
                           .route = [](uint64_t n) { return std::pair<size_t, size_t>(n % 3, 0); },
                           .shape = FilesOf(1, 16)});
  cluster.RunTo(kTo);
  Point point{f->Rate(kFrom, kTo) / kMB, {}};
  for (int i = 0; i < 3; ++i) point.g[i] = g->Rate(kFrom, kTo, i) / kMB;
  return point;
}

void RunStriped(Run& run) {
  Figure figure{"A stream striped over three bricks, f on one of them",
                "threads of g",
                "total of g over f",
                {{"slots", {}, {}}, {"flat", {}, {}}, {"equal totals", {0, 40}, {1, 1}, true}}};
  const std::vector<std::pair<int, double>> slots_ratio{{3, .16}, {6, .33}, {12, .70}};
  for (const auto& [threads, expected] : slots_ratio) {
    const Point p = Measure(run, threads, Slots(kBrickDepth, kBrickRate));
    run.Report("g : f with " + std::to_string(threads) + " threads (g is not backlogged)",
               p.ratio(), expected);
    figure.curves[0].x.push_back(threads);
    figure.curves[0].y.push_back(p.ratio());
  }
  for (int threads : {20, 30, 40}) {
    const Point p = Measure(run, threads, Slots(kBrickDepth, kBrickRate));
    const std::string at = ", " + std::to_string(threads) + " threads of g";
    run.Near("g : f in all" + at, p.ratio(), 1, .03);
    run.Near("g on brick B over A" + at, p.g[1] / p.g[0], 1, .03);
    run.Near("g on brick C over A" + at, p.g[2] / p.g[0], 1, .03);
    if (threads >= 30) run.NearPart("g on A, MB/s (C / 4)" + at, p.g[0], 1.5, .03);
    figure.curves[0].x.push_back(threads);
    figure.curves[0].y.push_back(p.ratio());
  }
  // The figure's knee: balanced from three threads on the shared brick on, and not before. It shows
  // where a brick is busy with one request; one that needs twenty has it at seven (above).
  const std::vector<std::pair<int, double>> knee{{1, .45}, {2, .95}, {3, 1}, {4, 1}, {7, 1}};
  for (const auto& [per_brick, expected] : knee) {
    const Point p = Measure(run, 3 * per_brick, Flat(kBrickRate));
    const std::string at =
        "flat bricks, g : f with " + std::to_string(per_brick) + " threads of g on each";
    if (per_brick >= 3) {
      run.Near(at + " (text: balanced)", p.ratio(), 1, .015);
    } else {
      run.Between(at + " (text: not yet)", p.ratio(), expected - .05, std::min(expected + .05, .98),
                  expected);
    }
    figure.curves[1].x.push_back(3 * per_brick);
    figure.curves[1].y.push_back(p.ratio());
  }
  run.Draw(std::move(figure));
}

}  // namespace

void AddStriped(std::vector<Experiment>* all) {
  all->push_back(
      {"E5", "A stream striped over three bricks", "DSFQ figure 10",
       "f on brick A, g striped over A, B and C, 1:1. With enough threads g has a quarter of "
       "A and as much on each of the others, three quarters of a brick in all, as f: A "
       "limits g, and the scheduler must not use B's and C's idle time. The paper's knee, three "
       "threads on the shared brick, shows on bricks that one request keeps busy.",
       RunStriped});
}

}  // namespace weir::sim
