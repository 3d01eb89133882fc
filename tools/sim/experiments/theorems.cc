// E10 and E11: theorems 1, 2 and 4 as bounds that no run may break, theorem 3 as an oracle.
#include <numeric>

#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/oracles/fairness_bound.h"
#include "tools/sim/oracles/water_filling.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

ClassId StreamId(size_t i) {
  return ClassId(16 + static_cast<uint32_t>(i));
}

// A device whose rate jumps at random, so that nothing settles.
void MakeRatesFluctuate(Cluster* cluster, Prng* prng, Duration end, double rate) {
  for (size_t osd = 0; osd < cluster->osds(); ++osd) {
    for (Duration at = 200ms; at < end; at += Duration(prng->Uniform(200'000'000, 1'500'000'000))) {
      const double now = rate * (0.2 + 1.6 * prng->Real());
      cluster->At(at, [=] { cluster->osd(osd).SetDeviceRate(now); });
    }
  }
}

// One random scenario; the largest part of its bound that any interval used.
double RandomScenario(const Run& run, Prng* prng, Theorem theorem, uint64_t* intervals) {
  constexpr Duration kEnd = 10s;
  Cluster cluster(prng->Next());
  const size_t bricks = prng->Uniform(1, 4);
  const int depth = static_cast<int>(prng->Uniform(1, 32));
  const size_t coordinators = prng->Uniform(1, 4);
  const uint64_t largest_kib = 1ull << prng->Uniform(2, 10);
  const double rate = 400.0 * static_cast<double>(largest_kib) * 1024;
  auto config =
      ProfileOf(theorem == Theorem::kOne ? "sfq" : "dsfq-total", static_cast<uint32_t>(depth));
  if (run.broken(Fault::kSharesOff)) config.surplus = SurplusKind::kFcfs;
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  for (size_t i = 0; i < bricks; ++i) {
    cluster.AddOsd(config, prng->Chance(.5) ? Flat(rate) : Slots(depth, rate));
  }
  SilenceBestEffort(&cluster);
  std::vector<FairnessBound::Stream> streams;
  for (size_t i = prng->Uniform(2, 5); i > 0; --i) {
    streams.push_back({StreamId(i), std::exp2(3 * prng->Real())});
    cluster.SetClass(Spec(streams.back().id, streams.back().weight));
  }
  FairnessBound bound(&cluster, theorem, streams, depth);
  MakeRatesFluctuate(&cluster, prng, kEnd, rate);
  Prng routes(prng->Next());
  for (const auto& stream : streams) {
    const uint64_t first = prng->Uniform(0, bricks - 1);
    const uint64_t used = prng->Uniform(1, bricks);
    const uint64_t burst = prng->Uniform(1, 12);
    const auto route = [=, &routes](uint64_t n) {
      const uint64_t brick = (first + n / burst % used) % bricks;
      return std::pair<size_t, size_t>(brick, routes.Uniform(0, coordinators - 1));
    };
    const auto threads = static_cast<int>(prng->Uniform(5, 60));
    Load* load = cluster.Start({.class_id = stream.id,
                                .outstanding = threads,
                                .route = route,
                                .shape = FilesOf(1, largest_kib)});
    if (!prng->Chance(.3)) continue;
    cluster.At(3s, [=] { load->SetOutstanding(0); });
    cluster.At(5s, [=] { load->SetOutstanding(threads); });
  }
  cluster.RunTo(kEnd);
  const double part = bound.WorstPart();
  *intervals += bound.intervals();
  return part;
}

void RunBounds(Run& run) {
  Prng prng(run.seed());
  for (Theorem theorem : {Theorem::kOne, Theorem::kTwo}) {
    double worst = 0;
    int broken = 0;
    uint64_t intervals = 0;
    for (int i = 0; i < 100; ++i) {
      const double part = RandomScenario(run, &prng, theorem, &intervals);
      worst = std::max(worst, part);
      broken += part > 1 ? 1 : 0;
    }
    const std::string name = theorem == Theorem::kOne ? "theorem 1" : "theorems 2 and 4";
    run.Near("100 random scenarios: broke the bound of " + name, broken, 0, 0);
    run.Report("largest part of the bound used, " + name, worst);
    run.AtLeast("intervals with both backlogged, " + name, static_cast<double>(intervals), 1000);
  }
}

void CheckOracle(Run& run) {
  const auto check = [&](const std::string& name, const std::vector<double>& got,
                         const std::vector<double>& expected) {
    for (size_t i = 0; i < got.size(); ++i) {
      run.Near(name + ", stream " + std::to_string(i + 1), got[i], expected[i], 1e-9);
    }
  };
  check("C 6, elsewhere 0 2 10", WaterFill(6, {1, 1, 1}, {0, 2, 10}), {4, 2, 0});
  check("C 200, weights 1:4, elsewhere 0 175", WaterFill(200, {1, 4}, {0, 175}), {75, 125});
  check("C 200, weights 1:4", WaterFill(200, {1, 4}, {0, 0}), {40, 160});
}

// Example 2: g has more elsewhere than A can make up for, so A goes to f, slowly but wholly.
void CheckBlocking(Run& run) {
  Cluster cluster(run.seed());
  const SchedulerConfig config = ProfileOf("dsfq-total", kBrickDepth);
  cluster.AddOsd(config, Flat(kBrickRate));
  cluster.AddOsd(config, Flat(1.5 * kBrickRate));
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  SilenceBestEffort(&cluster);
  cluster.SetClass(Spec(kF));
  cluster.SetClass(Spec(kG));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 30, .shape = FilesOf(1, 16)});
  Load* g = cluster.Start({.class_id = kG, .outstanding = 30, .shape = FilesOf(1, 16)});
  cluster.Start({.class_id = kG, .outstanding = 30, .osd = 1, .shape = FilesOf(1, 16)});
  cluster.RunTo(700s);
  const double f_rate = f->Rate(600s, 700s);
  const double g_rate = g->Rate(600s, 700s);
  run.AtMost("share of the blocked stream on A after 600 s", g_rate / (f_rate + g_rate), .02, 0);
  run.Near("A idle while somebody waits, s", ToSeconds(cluster.osd(0).idle_while_queued()), 0, 0);
}

// Random layouts: who is on which brick. The furthest from the oracle, of streams that are not
// (nearly) blocked anywhere; those converge too slowly to compare (A5).
double RandomLayout(Run& run, Prng* prng) {
  constexpr Duration kFrom = 300s, kTo = 700s;
  const size_t bricks = prng->Uniform(2, 4);
  const size_t streams = prng->Uniform(2, 4);
  std::vector<double> capacities(bricks), weights(streams);
  std::vector<std::vector<bool>> uses(streams, std::vector<bool>(bricks));
  Cluster cluster(prng->Next());
  if (run.broken(Fault::kDelayOff)) cluster.SendDelays(false);
  for (double& capacity : capacities) {
    capacity = kBrickRate * (0.5 + prng->Real());
    cluster.AddOsd(ProfileOf("dsfq-total", 8), Flat(capacity));
  }
  SilenceBestEffort(&cluster);
  std::vector<std::vector<Load*>> loads(streams, std::vector<Load*>(bricks));
  for (size_t i = 0; i < streams; ++i) {
    weights[i] = 1 + static_cast<double>(prng->Uniform(0, 2));
    cluster.SetClass(Spec(StreamId(i), weights[i]));
    const size_t own = prng->Uniform(0, bricks - 1);
    for (size_t brick = 0; brick < bricks; ++brick) {
      uses[i][brick] = brick == own || prng->Chance(.5);
      if (!uses[i][brick]) continue;
      loads[i][brick] = cluster.Start(
          {.class_id = StreamId(i), .outstanding = 30, .osd = brick, .shape = FilesOf(1, 16)});
    }
  }
  cluster.RunTo(kTo);
  const auto expected = WaterFillAll(capacities, weights, uses);
  double furthest = 0;
  for (size_t i = 0; i < streams; ++i) {
    double served = 0;
    bool nearly_blocked = false;
    for (size_t brick = 0; brick < bricks; ++brick) {
      if (!uses[i][brick]) continue;
      served += loads[i][brick]->Rate(kFrom, kTo);
      nearly_blocked |= expected[i][brick] < .1 * capacities[brick];
    }
    const double all = std::accumulate(expected[i].begin(), expected[i].end(), 0.0);
    if (!nearly_blocked) furthest = std::max(furthest, std::abs(served / all - 1));
  }
  return furthest;
}

void RunOracle(Run& run) {
  CheckOracle(run);
  CheckBlocking(run);
  Prng prng(run.seed());
  double furthest = 0;
  for (int i = 0; i < 12; ++i) furthest = std::max(furthest, RandomLayout(run, &prng));
  run.AtMost("12 random layouts: furthest total from theorem 3", furthest, .05);
}

}  // namespace

void AddTheorems(std::vector<Experiment>* all) {
  all->push_back(
      {"E10", "Fairness bounds hold in random runs", "DSFQ theorems 1, 2 and 4",
       "200 random scenarios (streams, bricks, depths, sizes, weights, coordinators, rates "
       "that jump, streams that pause): over every interval in which two streams are "
       "backlogged at a brick, the difference of their service stays within the theorem's "
       "bound. Reported: the largest part of the bound ever used.",
       RunBounds});
  all->push_back({"E11", "Rates are those of theorem 3", "DSFQ theorem 3, examples 1 and 2",
                  "Water filling against its worked numbers; a stream with too much elsewhere gets "
                  "nothing on A in the end; random layouts serve what water filling says.",
                  RunOracle});
}

}  // namespace weir::sim
