// E7 and E12: the minimum share of HYBRID-DSFQ, and bursts that it forgets (hybrid-h does not).
#include "common/qos/delay_function.h"
#include "osd/qos/surplus/dsfq.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/oracles/water_filling.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kMinimum = 1.0 / 12;

void SetStreams(Run& run, Cluster* cluster) {
  if (run.broken(Fault::kDelayOff)) cluster->SendDelays(false);
  SilenceBestEffort(cluster);
  for (ClassId id : {kF, kG}) {
    ClassSpec spec = Spec(id, 0.5);
    spec.min_weight = run.broken(Fault::kMinimumOff)     ? 1e-9
                      : run.broken(Fault::kMinimumLarge) ? 4 * kMinimum
                                                         : kMinimum;
    cluster->SetClass(spec);
  }
}

std::string_view ProfileFor(Run& run, std::string_view name) {
  if (name == "dsfq-hybrid-h" && run.broken(Fault::kHistoryOff)) return "dsfq-hybrid";
  return name;
}

struct Point {
  double f = 0, g_a = 0, g_b = 0;  // MB/s
  [[nodiscard]] double ratio() const { return (g_a + g_b) / f; }
  [[nodiscard]] double share() const { return g_a / (f + g_a); }
};

// 20 + 20 threads on A, g with some on B; coordinators in turn.
Point TwoBricks(Run& run, std::string_view profile, int threads_on_b, size_t coordinators) {
  constexpr Duration kFrom = 60s, kTo = 300s;
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf(ProfileFor(run, profile), kBrickDepth);
  for (int i = 0; i < 2; ++i) cluster.AddOsd(config, Slots(kBrickDepth, kBrickRate));
  SetStreams(run, &cluster);
  const auto start = [&](ClassId id, int threads, size_t osd) {
    return cluster.Start({.class_id = id,
                          .outstanding = threads,
                          .route = [=](uint64_t n) { return std::pair(osd, n % coordinators); },
                          .shape = FilesOf(1, 16)});
  };
  Load* f = start(kF, 20, 0);
  Load* g_a = start(kG, 20, 0);
  Load* g_b = start(kG, threads_on_b, 1);
  cluster.RunTo(kTo);
  return {f->Rate(kFrom, kTo) / kMB, g_a->Rate(kFrom, kTo) / kMB, g_b->Rate(kFrom, kTo) / kMB};
}

// The same on a flat brick, with g's rate on B given: nothing that comes and goes with threads. g's
// MB/s on A.
Point Steady(Run& run, std::string_view profile, double on_b) {
  constexpr Duration kFrom = 40s, kTo = 160s;
  constexpr uint64_t kMeanBytes = 8704;  // of FilesOf(1, 16)
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf(ProfileFor(run, profile), kBrickDepth);
  for (int i = 0; i < 2; ++i) cluster.AddOsd(config, Flat((i + 1) * kBrickRate));
  SetStreams(run, &cluster);
  Load* f = cluster.Start({.class_id = kF, .outstanding = 20, .shape = FilesOf(1, 16)});
  Load* g_a = cluster.Start({.class_id = kG, .outstanding = 20, .shape = FilesOf(1, 16)});
  Load* g_b = nullptr;
  if (on_b > 0) {
    g_b = cluster.Start({.class_id = kG,
                         .outstanding = 20,
                         .bytes = kMeanBytes,
                         .osd = 1,
                         .pace = on_b * kMB,
                         .shape = FilesOf(1, 16)});
  }
  cluster.RunTo(kTo);
  return {f->Rate(kFrom, kTo) / kMB, g_a->Rate(kFrom, kTo) / kMB,
          g_b == nullptr ? 0 : g_b->Rate(kFrom, kTo) / kMB};
}

constexpr int kThreads[] = {0, 4, 8, 12, 16, 20};

void AddPoint(Figure* figure, size_t curve, double x, double y) {
  figure->curves[curve].x.push_back(x);
  figure->curves[curve].y.push_back(y);
}

void CheckHybrid(Run& run, size_t coordinators, Figure* figure) {
  for (int threads : kThreads) {
    const Point p = TwoBricks(run, "dsfq-hybrid", threads, coordinators);
    const std::string at = ", " + std::to_string(threads) + " threads on B, " +
                           std::to_string(coordinators) + " coordinator(s)";
    run.AtLeast("share of g on A" + at, p.share(), kMinimum, kMinimum);
    if (p.g_b <= 2.5) run.Near("g : f in all (text: balanced)" + at, p.ratio(), 1, .04);
    // The text calls 3.6 MB/s balanced too. Not so here: with twelve threads on twenty slots what g
    // gets on B comes and goes, and the delays above the cap are lost.
    if (threads == 12) run.Between("g : f in all" + at, p.ratio(), 1.02, 1.12, 1);
    if (threads == 20) {
      run.Between("share of g on A, all of B its own" + at, p.share(), kMinimum, 2 * kMinimum,
                  kMinimum);
      run.Between("g : f in all (text: reasonably close)" + at, p.ratio(), 1.2, 1.45, 1.2);
    }
    if (coordinators > 1) continue;
    AddPoint(figure, 0, p.g_b, p.f);
    AddPoint(figure, 1, p.g_b, p.g_a);
    AddPoint(figure, 2, p.g_b, p.g_a + p.g_b);
  }
}

void RunHybrid(Run& run) {
  const double factor = HybridFactor(.5, kMinimum);
  run.Near("K of equation (11)", factor, 10, 1e-9);
  Figure figure{
      "HYBRID-DSFQ, minimum share of g 1/12",
      "g on B, MB/s",
      "MB/s",
      {{"f", {}, {}}, {"g on A", {}, {}}, {"g in all", {}, {}}, {"g on A, fluid", {}, {}, true}}};
  CheckHybrid(run, 1, &figure);
  CheckHybrid(run, 2, &figure);
  const Point total = TwoBricks(run, "dsfq-total", 20, 1);
  run.AtMost("share of g on A under TOTAL when it has all of B", total.share(), kMinimum - 1e-9);
  const std::vector<std::pair<double, double>> fluid{{0, 3}, {2, 2}, {4, 1}, {5, .5}, {6, .5}};
  for (const auto& [on_b, on_a] : fluid) {
    const double solved = HybridFill(6, {.5, .5}, {0, on_b}, {factor, factor})[1];
    run.Near("fluid limit, g on A with " + std::to_string(static_cast<int>(on_b)) + " MB/s on B",
             solved, on_a, 1e-6);
    AddPoint(&figure, 3, on_b, on_a);
    const std::string at = ", " + std::to_string(static_cast<int>(on_b)) + " MB/s on B";
    const Point hybrid = Steady(run, "dsfq-hybrid", on_b);
    const Point history = Steady(run, "dsfq-hybrid-h", on_b);
    // Delays that come by chance are cut where their mean is not, so HYBRID itself gives g more.
    if (on_b <= 4) {
      run.Between("flat brick, HYBRID: g : f in all (text: balanced)" + at, hybrid.ratio(), .99,
                  on_b < 4 ? 1.01 : 1.06, 1);
    } else {
      run.Between("flat brick, HYBRID: g on A, MB/s (minimum .5)" + at, hybrid.g_a, .5, .9, on_a);
    }
    run.Near("flat brick, HYBRID-H: g on A, MB/s" + at, history.g_a, on_a, .03);
  }
  run.Draw(std::move(figure));
}

// g sends bursts of n requests to A and B in turn, 20 outstanding; f is always on A.
double BurstRatio(Run& run, std::string_view profile, uint64_t burst) {
  constexpr Duration kFrom = 20s, kTo = 220s;
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf(ProfileFor(run, profile), 8);
  for (int i = 0; i < 2; ++i) cluster.AddOsd(config, Flat(kBrickRate));
  SetStreams(run, &cluster);
  Load* f = cluster.Start({.class_id = kF, .outstanding = 30, .bytes = 8 * kKiB});
  Load* g = cluster.Start(
      {.class_id = kG, .outstanding = 20, .bytes = 8 * kKiB, .route = [burst](uint64_t n) {
         return std::pair<size_t, size_t>(n / burst % 2, 0);
       }});
  cluster.RunTo(kTo);
  return g->Rate(kFrom, kTo) / f->Rate(kFrom, kTo);
}

void RunBursts(Run& run) {
  Figure figure{"g in bursts to A and B, f on A",
                "requests in a burst",
                "total of g over f",
                {{"TOTAL", {}, {}},
                 {"HYBRID", {}, {}},
                 {"HYBRID-H", {}, {}},
                 {"fair", {20, 400}, {1, 1}, true}}};
  const std::vector<std::pair<uint64_t, double>> derived{
      {20, 1.33}, {50, 1.67}, {100, 1.33}, {200, 1.14}, {400, 1.07}};
  for (const auto& [burst, hybrid_ratio] : derived) {
    const std::string at = ", bursts of " + std::to_string(burst);
    const auto x = static_cast<double>(burst);
    const double total = BurstRatio(run, "dsfq-total", burst);
    const double hybrid = BurstRatio(run, "dsfq-hybrid", burst);
    const double history = BurstRatio(run, "dsfq-hybrid-h", burst);
    run.Near("TOTAL, g : f" + at, total, 1, .01);
    if (burst <= 100) {
      run.AtLeast("HYBRID, g : f" + at, hybrid, 1.3, hybrid_ratio);
    } else {
      run.Report("HYBRID, g : f" + at, hybrid, hybrid_ratio);
    }
    if (static_cast<double>(burst * 8 * kKiB) <= kBrickRate * ToSeconds(osd::qos::Dsfq::kMemory)) {
      run.Near("HYBRID-H, g : f" + at, history, 1, .01);
    } else {
      run.Between("HYBRID-H, g : f, longer than it remembers" + at, history, .99, hybrid + .01);
    }
    AddPoint(&figure, 0, x, total);
    AddPoint(&figure, 1, x, hybrid);
    AddPoint(&figure, 2, x, history);
  }
  for (int threads : kThreads) {
    const Point p = TwoBricks(run, "dsfq-hybrid-h", threads, 1);
    const std::string at = ", steady, " + std::to_string(threads) + " threads on B";
    if (p.g_b <= 3.7) run.Near("HYBRID-H, g : f in all" + at, p.ratio(), 1, .02);
    if (threads == 20)
      run.AtLeast("HYBRID-H, share of g on A" + at, p.share(), kMinimum - .005, .09);
  }
  run.Draw(std::move(figure));
}

}  // namespace

void AddHybrid(std::vector<Experiment>* all) {
  all->push_back(
      {"E7", "A minimum share under total sharing", "DSFQ figure 12",
       "20 + 20 threads on A, g with 0 to 20 on B, minimum share 1/12, so K = 10. Totals stay "
       "balanced while g has little on B; beyond that g keeps its minimum on A, with one and "
       "with two alternating coordinators. Under TOTAL it would be blocked. On a flat brick with "
       "g's rate on B given, HYBRID-H is the fluid limit, HYBRID leaves it from 4 MB/s on.",
       RunHybrid});
  all->push_back(
      {"E12", "Alternating bursts: HYBRID forgets, HYBRID-H remembers",
       "DSFQ §3.4, named there as open",
       "g sends bursts of 20 to 400 requests to A and B in turn. HYBRID cuts the one large "
       "delay of each burst and forgets the rest, so g has up to 1.67 times its share; "
       "HYBRID-H carries the rest of bursts up to a quarter of a second and stays at 1.00, "
       "and keeps the minimum share of E7.",
       RunBursts});
}

}  // namespace weir::sim
