// E6: several coordinators, DSFQ figure 11.
#include "client/qos/delay_tracker.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/oracles/fairness_bound.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrom = 30s, kTo = 150s;

std::function<std::pair<size_t, size_t>(uint64_t)> RoundRobin(size_t osd, size_t coordinators) {
  return [=](uint64_t n) { return std::pair<size_t, size_t>(osd, n % coordinators); };
}

struct TwoStreams {
  Load *f, *g_a, *g_b;
};

// E3, every stream through `coordinators` in turn.
TwoStreams StartStreams(const Run& run, size_t coordinators, int threads_on_b, Cluster* cluster) {
  const SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  for (int i = 0; i < 2; ++i) cluster->AddOsd(config, Slots(kBrickDepth, kBrickRate));
  if (run.broken(Fault::kDelayOff)) cluster->SendDelays(false);
  SilenceBestEffort(cluster);
  cluster->SetClass(Spec(kF));
  cluster->SetClass(Spec(kG));
  const auto start = [&](ClassId id, int threads, size_t osd) {
    return cluster->Start({.class_id = id,
                           .outstanding = threads,
                           .route = RoundRobin(osd, coordinators),
                           .shape = FilesOf(1, 16)});
  };
  return {start(kF, 30, 0), start(kG, 30, 0), start(kG, threads_on_b, 1)};
}

// Figure 11(a) and (b): what g gets on B against what both get in all.
void DrawShares(Run& run, size_t coordinators) {
  constexpr Duration kBegin = 10s, kEnd = 50s;
  Figure figure{"f on brick A, g on A and B, " + std::to_string(coordinators) + " coordinators",
                "g on B, MB/s",
                "MB/s",
                {{"f", {}, {}}, {"g on A", {}, {}}, {"g in all", {}, {}}}};
  for (int threads : {0, 5, 10, 15}) {
    Cluster cluster(run.seed());
    const TwoStreams streams = StartStreams(run, coordinators, threads, &cluster);
    cluster.RunTo(kEnd);
    const double on_b = streams.g_b->Rate(kBegin, kEnd) / kMB;
    const double on_a = streams.g_a->Rate(kBegin, kEnd) / kMB;
    const double values[] = {streams.f->Rate(kBegin, kEnd) / kMB, on_a, on_a + on_b};
    for (size_t i = 0; i < 3; ++i) {
      figure.curves[i].x.push_back(on_b);
      figure.curves[i].y.push_back(values[i]);
    }
  }
  run.Draw(std::move(figure));
}

// With 10 threads of g on B.
void MeasureShares(Run& run, size_t coordinators) {
  Cluster cluster(run.seed());
  const TwoStreams streams = StartStreams(run, coordinators, 10, &cluster);
  FairnessBound bound(&cluster, Theorem::kTwo, {{kF, 1}, {kG, 1}}, kBrickDepth);
  const auto& [f, g_a, g_b] = streams;
  cluster.RunTo(kTo);
  const double f_rate = f->Rate(kFrom, kTo) / kMB;
  const double a_rate = g_a->Rate(kFrom, kTo) / kMB;
  const double b_rate = g_b->Rate(kFrom, kTo) / kMB;
  const std::string at = ", " + std::to_string(coordinators) + " coordinator(s)";
  run.Near("g : f in all" + at, (a_rate + b_rate) / f_rate, 1, .03);
  run.NearPart("f, MB/s" + at, f_rate, 4.5, .03);
  run.AtMost("largest part of theorem 4's bound used" + at, bound.WorstPart(), 1);
  const std::vector<double> of_f = f->Series(kFrom, kTo, 1s);
  const std::vector<double> on_a = g_a->Series(kFrom, kTo, 1s);
  const std::vector<double> on_b = g_b->Series(kFrom, kTo, 1s);
  std::vector<double> off;
  for (size_t i = 0; i < of_f.size(); ++i) {
    const double of_g = on_a[i] + on_b[i];
    off.push_back((of_g - of_f[i]) / (of_g + of_f[i]));
  }
  run.Report("deviation over 1 s windows" + at, StandardDeviation(off));
}

// Destinations in bursts of 20, coordinators at random: mean and variance of the delays.
void MeasureDelays(Run& run, size_t coordinators, double variance) {
  Prng prng(run.seed());
  std::vector<client::DelayTracker> trackers(coordinators);
  std::vector<double> delays;
  for (int i = 0; i < 1'000'000; ++i) {
    const OsdId osd(static_cast<uint32_t>(i / 20 % 2));
    const int64_t delay = trackers[prng.Uniform(0, coordinators - 1)].OnSend(kF, osd, 1);
    delays.push_back(static_cast<double>(delay));
  }
  const std::string at = ", " + std::to_string(coordinators) + " coordinator(s)";
  const double deviation = StandardDeviation(delays);
  run.NearPart("mean delay of bursts of 20" + at, Mean(delays), 1, .05);
  run.NearPart("variance of these delays" + at, deviation * deviation, variance, .05);
}

// g sends bursts of 20 to A and B in turn, each request through a coordinator by chance: how far
// the totals are apart in windows of a second.
double DeviationInBursts(Run& run, size_t coordinators) {
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf("dsfq-total", 8);
  for (int i = 0; i < 2; ++i) cluster.AddOsd(config, Flat(kBrickRate));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF));
  cluster.SetClass(Spec(kG));
  Prng prng(MixHash(run.seed(), 6));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 30, .bytes = 8 * kKiB});
  Load* g = cluster.Start(
      {.class_id = kG, .outstanding = 20, .bytes = 8 * kKiB, .route = [&](uint64_t n) {
         return std::pair<size_t, size_t>(n / 20 % 2, prng.Uniform(0, coordinators - 1));
       }});
  cluster.RunTo(kTo);
  const std::vector<double> of_f = f->Series(kFrom, kTo, 1s), of_g = g->Series(kFrom, kTo, 1s);
  std::vector<double> off;
  for (size_t i = 0; i < of_f.size(); ++i) off.push_back((of_g[i] - of_f[i]) / (of_g[i] + of_f[i]));
  return StandardDeviation(off);
}

void RunCoordinators(Run& run) {
  for (size_t n : {1, 2, 4}) MeasureShares(run, n);
  for (size_t n : {2, 4}) DrawShares(run, n);
  MeasureDelays(run, 1, 18.98);
  MeasureDelays(run, 2, 9.48);
  MeasureDelays(run, 4, 4.74);
  // What the figure's text says: with more coordinators the totals match closer. It takes lumpy
  // destinations; those of Postmark are smooth, and there the deviations above are the same.
  const double one = DeviationInBursts(run, 1);
  run.Between("bursts of 20: deviation over 1 s windows, 1 coordinator", one, .005, .013);
  run.Between("bursts of 20: deviation with 2 coordinators, of that with 1 (text: closer)",
              DeviationInBursts(run, 2) / one, .45, .8);
  run.Between("bursts of 20: deviation with 4 coordinators, of that with 1 (text: closer)",
              DeviationInBursts(run, 4) / one, .35, .7);
}

}  // namespace

void AddCoordinators(std::vector<Experiment>* all) {
  all->push_back(
      {"E6", "Two and four coordinators", "DSFQ figure 11",
       "E3 with g giving 3 MB/s on B and every stream going through 1, 2 or 4 coordinators "
       "in turn, which tell each other nothing: the totals stay equal. More coordinators "
       "smooth lumpy delays: bursts of 20 have a variance of 18.98, 9.48, 4.74, and the totals of "
       "a stream that sends such bursts match closer, as the figure's text says. With the figure's "
       "own workload that cannot be seen: its destinations are smooth already.",
       RunCoordinators});
}

}  // namespace weir::sim
