// E1: the delay counters of DSFQ figures 5 and 7.
#include <map>

#include "client/qos/delay_tracker.h"
#include "common/qos/affinity.h"
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/dsfq_setup.h"

namespace weir::sim {
namespace {

constexpr ClassId kStream{16};
constexpr OsdId kA{0}, kX{1};

CoordinatorUse UseOf(const client::DelayTracker& tracker, const std::string& name) {
  CoordinatorUse use{name, {}};
  for (const OsdId osd : tracker.OsdsOf(kStream)) use.osds[osd] = 1;
  return use;
}

// A x x A A through these of two coordinators: the delays at A, in order.
std::vector<int64_t> DelaysAtA(const std::vector<size_t>& coordinators, bool* warned = nullptr) {
  const std::vector<OsdId> bricks{kA, kX, kX, kA, kA};
  std::vector<client::DelayTracker> trackers(2);
  std::vector<int64_t> delays;
  for (size_t i = 0; i < bricks.size(); ++i) {
    const int64_t delay = trackers[coordinators[i]].OnSend(kStream, bricks[i], 1);
    if (bricks[i] == kA) delays.push_back(delay);
  }
  if (warned != nullptr) {
    *warned = AffinityAnomaly({UseOf(trackers[0], "1"), UseOf(trackers[1], "2")}).has_value();
  }
  return delays;
}

// I-8: on random splits over coordinators, the delays at a brick and what is not yet said add up to
// what went elsewhere. Returns how many of `rounds` broke it.
int BrokenSplits(Prng* prng, int rounds) {
  int broken = 0;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t coordinators = prng->Uniform(1, 4);
    const uint64_t bricks = prng->Uniform(1, 4);
    std::vector<client::DelayTracker> trackers(coordinators);
    std::vector<int64_t> delays(bricks), sent(bricks);
    int64_t all = 0;
    for (uint64_t i = prng->Uniform(1, 30); i > 0; --i) {
      const uint64_t brick = prng->Uniform(0, bricks - 1);
      const auto cost = static_cast<int64_t>(prng->Uniform(1, 1024));
      const OsdId osd(static_cast<uint32_t>(brick));
      client::DelayTracker& tracker = trackers[prng->Uniform(0, coordinators - 1)];
      delays[brick] += tracker.OnSend(kStream, osd, cost);
      sent[brick] += cost;
      all += cost;
    }
    for (uint64_t brick = 0; brick < bricks; ++brick) {
      int64_t said = delays[brick];
      for (const auto& tracker : trackers) {
        said += tracker.Unsent(kStream, OsdId(static_cast<uint32_t>(brick)));
      }
      broken += said != all - sent[brick] ? 1 : 0;
    }
  }
  return broken;
}

Curve DelayCurve(const std::string& name, const std::vector<int64_t>& delays) {
  Curve curve{name, {}, {}};
  for (int64_t delay : delays) {
    curve.x.push_back(static_cast<double>(curve.x.size() + 1));
    curve.y.push_back(static_cast<double>(delay));
  }
  return curve;
}

void RunDelays(Run& run) {
  const auto one = DelaysAtA({0, 0, 0, 0, 0});
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<double> paper{0, 2, 0};
    run.Near("one coordinator, delay " + std::to_string(i + 1) + " at A",
             static_cast<double>(one[i]), paper[i], 0);
  }
  bool warned = false;
  const auto two = DelaysAtA({0, 1, 0, 1, 0}, &warned);
  run.True("two in turn: no warning", !warned);
  run.Near("coordinator 1, first delay at A", static_cast<double>(two[0]), 0, 0);
  run.Near("coordinator 2, delay at A", static_cast<double>(two[1]), 1, 0);
  run.Near("coordinator 1, second delay at A", static_cast<double>(two[2]), 1, 0);
  run.Near("sum over two coordinators", static_cast<double>(two[0] + two[1] + two[2]), 2, 0);
  const auto apart = DelaysAtA({0, 1, 1, 0, 0}, &warned);
  run.True("a coordinator for each brick: warned about", warned);
  run.Near("a coordinator for A only, one for x only: the anomaly, no delay at all",
           static_cast<double>(apart[0] + apart[1] + apart[2]), 0, 0);
  run.Draw({"Delay that requests carry to A",
            "request at A",
            "delay",
            {DelayCurve("one coordinator", one),
             DelayCurve("two coordinators in turn", two),
             {"one coordinator, paper", {1, 2, 3}, {0, 2, 0}, true},
             {"two coordinators, paper", {1, 2, 3}, {0, 1, 1}, true}}});
  Prng prng(run.seed());
  run.Near("10,000 random splits: sums that differ (I-8)", BrokenSplits(&prng, 10'000), 0, 0);
}

}  // namespace

void AddDelayArithmetic(std::vector<Experiment>* all) {
  all->push_back({"E1", "Delay counters at one and two coordinators", "DSFQ figures 5 and 7",
                  "A stream goes to bricks A x x A A with unit cost. One coordinator says 0, 2, 0 "
                  "at A; two in turn say 0, 1 and 1, the same sum. A coordinator that sees only A "
                  "and another that sees only x say nothing: the known anomaly.",
                  RunDelays});
}

}  // namespace weir::sim
