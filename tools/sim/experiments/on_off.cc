// E8: a third stream that comes and goes, DSFQ figure 13.
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTurn = 10s;
constexpr int kTurns = 12;  // on, off, on ... from kTurn on
constexpr Duration kEnd = kTurn * (kTurns + 1);
constexpr Duration kWindow = 100ms;

struct Result {
  double settled_ratio = 0;        // f : g in the later halves of the turns
  std::vector<double> f_on, g_on;  // MB/s per window from 1 s before h comes, mean over turns
  double deficit = 0;              // KB that g got less than f in the first second after "on"
  double settling = 0;             // s until f is near its new level
};

double Average(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += values[i];
  return sum / static_cast<double>(to - from);
}

// Seconds after "on" at which a mean curve has gone half way from its old level to its new one.
double HalfWay(const std::vector<double>& curve) {
  const double old_level = Average(curve, 0, 10);
  const double new_level = Average(curve, 60, curve.size());
  for (size_t i = 10; i < curve.size(); ++i) {
    if (curve[i] < (old_level + new_level) / 2) return static_cast<double>(i - 10) * 0.1;
  }
  return 1e9;
}

double SettledAfter(const std::vector<double>& curve) {
  const double new_level = Average(curve, 60, curve.size());
  for (size_t i = 10; i + 5 <= curve.size(); ++i) {
    if (std::abs(Average(curve, i, i + 5) / new_level - 1) < .05) {
      return static_cast<double>(i - 10) * 0.1;
    }
  }
  return 1e9;
}

Result Measure(Run& run, uint64_t seed, int threads) {
  Cluster cluster(seed);
  const SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  cluster.AddOsd(config, Flat(kBrickRate));
  cluster.AddOsd(config, Flat(kBrickRate / 2));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  for (ClassId id : {kF, kG, kH}) cluster.SetClass(Spec(id));
  Load* f = cluster.Start({.class_id = kF, .outstanding = threads, .shape = FilesOf(1, 16)});
  Load* g_a = cluster.Start({.class_id = kG, .outstanding = threads, .shape = FilesOf(1, 16)});
  Load* g_b = cluster.Start({.class_id = kG, .outstanding = 10, .osd = 1, .shape = FilesOf(1, 16)});
  Load* h = cluster.Start({.class_id = kH, .outstanding = 0, .osd = 1, .shape = FilesOf(1, 16)});
  for (int turn = 1; turn <= kTurns; ++turn) {
    cluster.At(kTurn * turn, [=] { h->SetOutstanding(turn % 2 == 1 ? 10 : 0); });
  }
  cluster.RunTo(kEnd);

  const auto g_rate = [&](Duration from, Duration to) {
    return g_a->Rate(from, to) + g_b->Rate(from, to);
  };
  Result result;
  result.f_on.assign(110, 0);
  result.g_on.assign(110, 0);
  double f_settled = 0;
  double g_settled = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    const Duration start = kTurn * turn;
    f_settled += f->Rate(start + kTurn / 2, start + kTurn);
    g_settled += g_rate(start + kTurn / 2, start + kTurn);
    if (turn % 2 == 0) continue;
    constexpr double kOnTurns = kTurns / 2.0;
    result.deficit += (f->Rate(start, start + 1s) - g_rate(start, start + 1s)) / 1e3 / kOnTurns;
    for (size_t i = 0; i < result.f_on.size(); ++i) {
      const Duration at = start - 1s + kWindow * static_cast<int64_t>(i);
      result.f_on[i] += f->Rate(at, at + kWindow) / kMB / kOnTurns;
      result.g_on[i] += g_rate(at, at + kWindow) / kMB / kOnTurns;
    }
  }
  result.settled_ratio = f_settled / g_settled;
  result.settling = SettledAfter(result.f_on);
  return result;
}

void Draw(Run& run, const Result& result, int threads) {
  Figure figure{"h comes at 0 s; f and g with " + std::to_string(threads) + " threads on A",
                "s",
                "MB/s",
                {{"f", {}, {}}, {"g in all", {}, {}}}};
  for (size_t i = 0; i < result.f_on.size(); ++i) {
    for (Curve& curve : figure.curves) curve.x.push_back(static_cast<double>(i) * .1 - 1);
  }
  figure.curves[0].y = result.f_on;
  figure.curves[1].y = result.g_on;
  run.Draw(std::move(figure));
}

void RunOnOff(Run& run) {
  constexpr int kSeeds = 5;
  std::vector<double> deficits;
  for (int threads : {20, 30, 60}) {
    double deficit = 0;
    double f_half = 0;
    double g_half = 0;
    Result first;
    for (uint64_t i = 0; i < kSeeds; ++i) {
      const Result result = Measure(run, MixHash(run.seed(), i), threads);
      deficit += result.deficit / kSeeds;
      f_half += HalfWay(result.f_on) / kSeeds;
      g_half += HalfWay(result.g_on) / kSeeds;
      if (i == 0) first = result;
    }
    deficits.push_back(deficit);
    const std::string at = ", " + std::to_string(threads) + " threads";
    if (threads == 60) continue;
    run.Near("f : g in all, settled" + at, first.settled_ratio, 1, .03);
    run.AtLeast("f falls later than g by, s" + at, f_half - g_half, .1);
    run.AtMost("f at its new level after, s" + at, first.settling, 3);
    Draw(run, first, threads);
  }
  run.AtLeast("deficit of g after h comes, 30 threads over 20", deficits[1] / deficits[0], 1.2,
              357.0 / 236);
  run.AtLeast("the same, 60 threads over 30", deficits[2] / deficits[1], 1.2, 654.0 / 357);
  const std::vector<double> derived{236, 357, 654};
  for (size_t i = 0; i < derived.size(); ++i) {
    run.Report("deficit of g in the first second, KB", deficits[i], derived[i]);
  }
}

}  // namespace

void AddOnOff(std::vector<Experiment>* all) {
  all->push_back(
      {"E8", "A stream that comes and goes", "DSFQ figure 13",
       "f and g on A (6 MB/s), g with 10 more threads on B (3 MB/s), h on B for 10 s of "
       "every 20. When h comes, g falls at once and f follows when the requests that were "
       "tagged before have gone; deeper queues make the difference larger.",
       RunOnOff});
}

}  // namespace weir::sim
