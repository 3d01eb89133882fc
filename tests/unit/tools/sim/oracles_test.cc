// The oracles themselves: worked numbers, and that the bound can be broken.
#include <gmock/gmock.h>

#include <numeric>

#include "common/testing/seed.h"
#include "tools/sim/devices/simple.h"
#include "tools/sim/experiments/dsfq_setup.h"
#include "tools/sim/oracles/fairness_bound.h"
#include "tools/sim/oracles/water_filling.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(WaterFillTest, WorkedNumbers) {
  EXPECT_THAT(WaterFill(6, {1, 1, 1}, {0, 2, 10}),
              ElementsAre(DoubleNear(4, 1e-9), DoubleNear(2, 1e-9), 0));
  EXPECT_THAT(WaterFill(200, {1, 4}, {0, 175}),
              ElementsAre(DoubleNear(75, 1e-9), DoubleNear(125, 1e-9)));
}

TEST(HybridFillTest, KeepsTheMinimum) {
  EXPECT_THAT(HybridFill(6, {.5, .5}, {0, 6}, {10, 10}),
              ElementsAre(DoubleNear(5.5, 1e-6), DoubleNear(.5, 1e-6)));
}

// I-11: at each brick streams with service share one level, and those without are above it.
TEST(WaterFillAllTest, RandomLayoutsReachTheFixedPoint) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const size_t streams = prng.Uniform(2, 5);
    const size_t bricks = prng.Uniform(1, 4);
    std::vector<double> capacities(bricks), weights(streams);
    std::vector<std::vector<bool>> uses(streams, std::vector<bool>(bricks));
    for (double& c : capacities) c = 1 + 9 * prng.Real();
    for (size_t i = 0; i < streams; ++i) {
      weights[i] = .5 + 2 * prng.Real();
      for (size_t b = 0; b < bricks; ++b) uses[i][b] = b == i % bricks || prng.Chance(.5);
    }
    const auto rates = WaterFillAll(capacities, weights, uses);
    for (size_t b = 0; b < bricks; ++b) {
      double served = 0, level = 0, lowest_blocked = 1e18;
      bool any = false;
      for (size_t i = 0; i < streams; ++i) {
        any |= uses[i][b];
        served += rates[i][b];
        const double all = std::accumulate(rates[i].begin(), rates[i].end(), 0.0) / weights[i];
        if (rates[i][b] > 1e-6) level = std::max(level, all);
        if (uses[i][b] && rates[i][b] <= 1e-6) lowest_blocked = std::min(lowest_blocked, all);
      }
      if (!any) continue;
      EXPECT_NEAR(served, capacities[b], 1e-6);
      EXPECT_GE(lowest_blocked, level - 1e-5);
      for (size_t i = 0; i < streams; ++i) {
        if (rates[i][b] <= 1e-6) continue;
        EXPECT_NEAR(std::accumulate(rates[i].begin(), rates[i].end(), 0.0) / weights[i], level,
                    1e-5);
      }
    }
  }
}

// First come first served between unequal queues is no fair queueing, and the watcher says so.
TEST(FairnessBoundTest, AnUnfairSchedulerBreaksTheBound) {
  for (const char* profile : {"noqos", "sfq"}) {
    Cluster cluster(1);
    cluster.AddOsd(ProfileOf(profile, 4), Flat(kBrickRate));
    cluster.SetClass(Spec(kF));
    cluster.SetClass(Spec(kG));
    FairnessBound bound(&cluster, Theorem::kOne, {{kF, 1}, {kG, 1}}, 4);
    cluster.Start({.class_id = kF, .outstanding = 40, .bytes = 8 * kKiB});
    cluster.Start({.class_id = kG, .outstanding = 10, .bytes = 8 * kKiB});
    cluster.RunTo(30s);
    if (std::string(profile) == "noqos") {
      EXPECT_GT(bound.WorstPart(), 10);
    } else {
      EXPECT_LE(bound.WorstPart(), 1);
    }
  }
}

}  // namespace
}  // namespace weir::sim
