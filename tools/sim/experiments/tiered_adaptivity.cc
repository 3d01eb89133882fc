// E26: BAA's loop while a client's hit ratio changes; figure 5 of the BAA paper.
#include "osd/qos/control/bottleneck_aware.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/tiered_setup.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::BottleneckAware;

constexpr Duration kChange = 510s, kEnd = 900s;

// The array of figure 5: the first client's hit ratio falls on the way.
class FallingArray : public LoopedArray {
 public:
  FallingArray(uint64_t seed, const BottleneckAware::Options& options)
      : LoopedArray(seed, options, {.45, .95}) {
    array().cluster().At(kChange, [this] { array().SetHit(0, .2); });
  }
};

struct Phase {
  Duration from, to;
  double first, second;  // IOPS of the paper's allocation
  const char* name;
};

Figure Draw(const TieredArray& array) {
  Figure figure{"Throughput of two clients; the first's hit ratio falls from .45 to .2 at 510 s",
                "s",
                "IOPS",
                {{"client 1", {}, {}}, {"client 2", {}, {}}}};
  for (size_t i = 0; i < 2; ++i) {
    const auto series = array.load(i).Series(0s, kEnd, 10s);
    for (size_t n = 0; n < series.size(); ++n) {
      figure.curves[i].x.push_back(10.0 * static_cast<double>(n));
      figure.curves[i].y.push_back(series[n] / 4096);
    }
  }
  return figure;
}

void RunFigureFive(Run& run) {
  BottleneckAware::Options options{.tiers = HdAndSsd(200, 3000),
                                   .period = 100s,
                                   .window = {.requests = 0, .span = 60s},
                                   .alarm = false};
  FallingArray paper(run.seed(), options);
  if (run.broken(Fault::kWeightsFrozen)) paper.Freeze();
  paper.RunTo(kEnd);
  const Phase phases[] = {{200s, 500s, 181.8, 2000.0, ", 200-500 s, h .45"},
                          {520s, 595s, 148.1, 1629.6, ", 520-595 s, h .2 under the old weights"},
                          {620s, 900s, 125.0, 2000.0, ", 620-900 s, h .2"}};
  for (const Phase& phase : phases) {
    const double first = paper.array().Iops(0, phase.from, phase.to);
    const double second = paper.array().Iops(1, phase.from, phase.to);
    run.NearPart(std::string("client 1, IOPS") + phase.name, first, phase.first, .05);
    run.NearPart(std::string("client 2, IOPS") + phase.name, second, phase.second, .05);
    run.NearPart(std::string("total, IOPS") + phase.name, first + second,
                 phase.first + phase.second, .05);
  }
  run.Draw(Draw(paper.array()));

  // As it runs in production: every second, over the last thousand requests.
  options.period = 1s;
  options.window = {};
  options.alarm = true;
  FallingArray quick(run.seed(), options);
  if (run.broken(Fault::kWeightsFrozen)) quick.Freeze();
  quick.RunTo(595s);
  run.NearPart("production settings: client 1, IOPS, 10 s after the change on",
               quick.array().Iops(0, 520s, 595s), 125, .05);
  run.NearPart("production settings: client 2, IOPS, 10 s after the change on",
               quick.array().Iops(1, 520s, 595s), 2000, .05);

  // The alarm alone, with a period that never comes.
  options.period = 10000s;
  FallingArray alarmed(run.seed(), options);
  if (run.broken(Fault::kWeightsFrozen)) alarmed.Freeze();
  alarmed.RunTo(595s);
  run.NearPart("alarm only: total, IOPS, 10 s after the change on",
               alarmed.array().Iops(0, 520s, 595s) + alarmed.array().Iops(1, 520s, 595s), 2125,
               .08);
  run.Report("alarm only: times solved in 595 s", static_cast<double>(alarmed.solved()));
}

}  // namespace

void AddTieredAdaptivity(std::vector<Experiment>* all) {
  all->push_back({"E26", "A hit ratio changes", "BAA figure 5",
                  "HD 200 and SSD 3000 IOPS, hit ratios .45 and .95; client 1 falls to .2 at "
                  "510 s. Weights every 100 s from a window of 60 s: both clients lose until "
                  "600 s, then the division of the new ratio holds. Then the same with the "
                  "settings of production, and with the alarm alone, which need no 90 s.",
                  RunFigureFive});
}

}  // namespace weir::sim
