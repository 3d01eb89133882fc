// What a class gets: with capacity C and everybody backlogged, x_c = max(R_c, w_c * lambda) cut at
// its limit, with lambda such that the sum is C. Random mixes against this oracle in virtual time.
#include <gmock/gmock.h>

#include "common/testing/seed.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using sim::LoadOptions;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;

struct Mix {
  std::vector<ClassSpec> classes;
  std::vector<double> expected;  // bytes per second
};

double Share(const ClassSpec& spec, double lambda) {
  const double floor = spec.reservation ? static_cast<double>(spec.reservation->bytes_per_s) : 0;
  const double share = std::max(floor, spec.weight * lambda);
  return spec.limit_bytes_per_s ? std::min(share, static_cast<double>(*spec.limit_bytes_per_s))
                                : share;
}

std::vector<double> WaterFill(const std::vector<ClassSpec>& classes, double capacity) {
  double low = 0, high = capacity / 0.01;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const ClassSpec& spec : classes) sum += Share(spec, middle);
    (sum > capacity ? high : low) = middle;
  }
  std::vector<double> shares;
  for (const ClassSpec& spec : classes) shares.push_back(Share(spec, low));
  return shares;
}

Mix RandomMix(Prng* prng, double capacity, bool with_limits) {
  Mix mix;
  double promised = 0;
  const auto count = static_cast<uint32_t>(prng->Uniform(2, 7));
  for (uint32_t i = 0; i < count; ++i) {
    ClassSpec spec = testing::Spec(ClassId(16 + i), 0.25 + 4 * prng->Real());
    const double reserve = prng->Real() * (0.9 * capacity - promised);
    if (prng->Chance(0.5) && reserve > 1e6) {
      promised += reserve;
      spec.reservation =
          Reservation{static_cast<uint64_t>(reserve), ReservationScope::kCluster, std::nullopt};
    }
    // The first class has no limit, so that the capacity is always asked for.
    if (with_limits && i > 0 && prng->Chance(0.5)) {
      spec.limit_bytes_per_s = static_cast<uint64_t>((0.05 + prng->Real()) * capacity / 2);
    }
    mix.classes.push_back(spec);
  }
  mix.expected = WaterFill(mix.classes, capacity);
  return mix;
}

class AllocationTest : public ::testing::TestWithParam<DispatchKind> {};

TEST_P(AllocationTest, MatchesTheWaterFillingOracle) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const double capacity = 100.0 * kMiB;
    const Mix mix = RandomMix(&prng, capacity, round % 2 == 1);
    SchedulerConfig config;
    config.token_rate = 100 * kMiB;
    config.best_effort_min = 0;
    config.depth = 4;
    config.dispatch = GetParam();
    Cluster cluster(1, config, 100 * kMiB);
    std::vector<Load*> loads;
    for (const ClassSpec& spec : mix.classes) cluster.SetClass(spec);
    for (const ClassSpec& spec : mix.classes) {
      loads.push_back(cluster.Start({.class_id = spec.id, .outstanding = 48, .bytes = 64 * kKiB}));
    }
    cluster.RunTo(12s);
    for (size_t i = 0; i < loads.size(); ++i) {
      EXPECT_NEAR(loads[i]->Rate(2s, 12s), mix.expected[i], 0.02 * mix.expected[i] + 150e3)
          << "class " << i << " weight " << mix.classes[i].weight;
      const ClassSpec& spec = mix.classes[i];
      if (!spec.reservation) continue;
      // I-13, cut at the class's own limit: in every second at least the promise, but for one
      // bucket and one request.
      const double promise = std::min<double>(spec.reservation->bytes_per_s,
                                              spec.limit_bytes_per_s.value_or(UINT64_MAX));
      const double slack = std::max(128.0 * kKiB, promise / 10) + 64 * kKiB;
      for (Duration at = 1s; at + 1s <= 12s; at += 500ms) {
        EXPECT_GE(loads[i]->Rate(at, at + 1s), promise - slack) << "class " << i;
      }
    }
    EXPECT_FALSE(cluster.osd().saw_idle_while_queued());  // I-4
  }
}

INSTANTIATE_TEST_SUITE_P(Dispatch, AllocationTest,
                         ::testing::Values(DispatchKind::kFifo, DispatchKind::kCscan));

// A class that asks for less leaves the rest to the others, and an idle one earns nothing.
TEST(AllocationRunTest, WhatOneClassLeavesOthersTake) {
  SchedulerConfig config;
  config.token_rate = 100 * kMiB;
  config.best_effort_min = 0;
  config.depth = 4;
  Cluster cluster(1, config, 100 * kMiB);
  cluster.SetClass(testing::Reserved(ClassId(16), 60 * kMiB));
  cluster.SetClass(testing::Spec(ClassId(17)));
  Load* modest = cluster.Start({.class_id = ClassId(16), .pace = 15.0 * kMiB});
  Load* greedy = cluster.Start({.class_id = ClassId(17), .outstanding = 48});
  cluster.RunTo(5s);
  EXPECT_NEAR(modest->MiBps(1s, 5s), 15, 0.3);
  EXPECT_NEAR(greedy->MiBps(1s, 5s), 85, 1);
  modest->Stop();
  cluster.RunTo(10s);
  Load* back = cluster.Start({.class_id = ClassId(16), .outstanding = 48});
  cluster.RunTo(15s);
  EXPECT_NEAR(back->MiBps(10s, 11s), 60, 7);  // a full leaf, and no more
  EXPECT_NEAR(back->MiBps(11s, 15s), 60, 1);
}

// I-17, E45: class 0 progresses at its minimum under any load.
TEST(AllocationRunTest, BestEffortKeepsItsMinimum) {
  SchedulerConfig base;
  base.token_rate = 40 * kMiB;
  base.best_effort_min = 1 * kMiB;
  SchedulerConfig config = *ApplyProfile("odis", base);
  config.maximizer = false;
  Cluster cluster(1, config, 60 * kMiB);
  cluster.SetClass(testing::Reserved(ClassId(16), 39 * kMiB));
  cluster.Start({.class_id = ClassId(16), .outstanding = 64});
  Load* orphan = cluster.Start({.class_id = ClassId(99), .outstanding = 1});  // unknown: class 0
  cluster.RunTo(20s);
  EXPECT_GE(orphan->MiBps(2s, 20s), 0.98);
}

// A promise that the device cannot keep is counted second by second; one that is kept is not.
TEST(AllocationRunTest, ViolationSecondsCountBrokenPromisesOnly) {
  SchedulerConfig config;
  config.token_rate = 100 * kMiB;
  config.best_effort_min = 0;
  Cluster cluster(1, config, 100 * kMiB);
  cluster.SetClass(testing::Reserved(ClassId(16), 60 * kMiB));
  cluster.SetClass(testing::Reserved(ClassId(17), 10 * kMiB));
  cluster.Start({.class_id = ClassId(16), .outstanding = 200});
  cluster.Start({.class_id = ClassId(17), .outstanding = 200, .bytes = kMiB});
  const auto violations = [&](size_t index) {
    return cluster.osd().scheduler().Counters(cluster.events().now())[index].violation_seconds;
  };
  cluster.RunTo(10s + 1ms);
  EXPECT_EQ(violations(1), 0u);
  EXPECT_EQ(violations(2), 0u);
  cluster.osd().SetDeviceRate(30 * kMiB);
  cluster.RunTo(20s + 1ms);
  EXPECT_GE(violations(1), 8u);
}

}  // namespace
}  // namespace weir::osd::qos
