// The AQuA experiments (figures 7, 9 and 10) in virtual time: writers of 512 KiB blocks, four
// requests under way each, reservations 5, 15 and 20 of 40 MiB/s, started one after the other.
#include <gmock/gmock.h>

#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Reserved;

const std::vector<uint64_t> kPromised{5, 15, 20};

SchedulerConfig Odis(bool maximizer) {
  SchedulerConfig base;
  base.token_rate = 40 * kMiB;
  base.best_effort_min = 0;
  SchedulerConfig config = *ApplyProfile("odis", base);
  config.maximizer = maximizer;
  return config;
}

Load* StartWriter(Cluster* cluster, size_t index) {
  return cluster->Start({.class_id = ClassId(16 + static_cast<uint32_t>(index)),
                         .outstanding = 4,
                         .bytes = 512 * kKiB});
}

// Starts the three writers `gap` apart and runs until `end`.
std::vector<Load*> RunWriters(Cluster* cluster, Duration gap, Duration end) {
  for (uint32_t i = 0; i < 3; ++i) {
    cluster->SetClass(Reserved(ClassId(16 + i), kPromised[i] * kMiB));
  }
  std::vector<Load*> writers;
  for (size_t i = 0; i < 3; ++i) {
    writers.push_back(StartWriter(cluster, i));
    cluster->RunTo(i < 2 ? gap * static_cast<int>(i + 1) : end);
  }
  return writers;
}

double Sum(const std::vector<Load*>& loads, Duration from, Duration to) {
  double sum = 0;
  for (const Load* load : loads) sum += load->MiBps(from, to);
  return sum;
}

TEST(AquaTest, FigureNineEachGetsItsPromiseAndBorrowersShareTheRest) {
  Cluster cluster(1, Odis(false), 60 * kMiB);
  const std::vector<Load*> writers = RunWriters(&cluster, 10s, 30s);
  EXPECT_NEAR(writers[0]->MiBps(0s, 10s), 40, 0.03 * 40);  // the burst of full buckets included
  EXPECT_NEAR(writers[0]->MiBps(2s, 10s), 40, 0.02 * 40);
  EXPECT_NEAR(Sum(writers, 12s, 20s), 40, 0.02 * 40);
  EXPECT_NEAR(writers[0]->MiBps(12s, 20s), 20, 1);  // FCFS makes the totals equal (A10)
  EXPECT_NEAR(writers[1]->MiBps(12s, 20s), 20, 1);
  for (size_t i = 0; i < 3; ++i) {
    const auto promised = static_cast<double>(kPromised[i]);
    EXPECT_NEAR(writers[i]->MiBps(20s, 30s), promised, 0.03 * promised) << i;
    EXPECT_NEAR(writers[i]->MiBps(22s, 30s), promised, 0.03 * promised) << i;
  }
}

// I-12: over any interval no more than the buckets hold and G gives.
TEST(AquaTest, TheStrictGateNeverLetsMoreThanItsTokensPass) {
  Cluster cluster(1, Odis(false), 200 * kMiB);
  const std::vector<Load*> writers = RunWriters(&cluster, 10s, 30s);
  const double caps = 4 + 1 + 1.5 + 2;  // MiB: the root's and the leaves'
  const double under_way = 12 * 0.5;    // released before an interval, completed in it
  for (Duration length : {Duration(100ms), Duration(1s), Duration(7s)}) {
    for (Duration at = 0s; at + length <= 30s; at += 50ms) {
      EXPECT_LE(Sum(writers, at, at + length) * ToSeconds(length),
                caps + under_way + 40 * ToSeconds(length));
    }
  }
}

TEST(AquaTest, FigureTenTheMaximizerRaisesTheSumAndKeepsThePromises) {
  Cluster cluster(1, Odis(true), 60 * kMiB);
  const std::vector<Load*> writers = RunWriters(&cluster, 20s, 60s);
  for (size_t i = 0; i < 3; ++i) {
    const Duration start = 20s * static_cast<int>(i);
    for (Duration at = start + 5s; at + 2s <= 60s; at += 2s) {
      // -2 %, and a request that is half done at either end.
      EXPECT_GE(writers[i]->MiBps(at, at + 2s), 0.98 * static_cast<double>(kPromised[i]) - 0.25)
          << i << " at " << ToSeconds(at);
    }
  }
  EXPECT_GE(Sum(writers, 50s, 60s), 1.3 * 40);
  EXPECT_LE(Sum(writers, 50s, 60s), 60.5);
  const uint64_t raised = cluster.osd().scheduler().State({}).token_rate;
  EXPECT_GE(raised, 55 * kMiB);
  EXPECT_LE(raised, 68 * kMiB);
  // The device loses its breath: promises break, and G comes back to G0.
  cluster.osd().SetDeviceRate(35 * kMiB);
  cluster.RunTo(80s);
  EXPECT_EQ(cluster.osd().scheduler().State({}).token_rate, 40 * kMiB);
}

TEST(AquaTest, FigureSevenScenarioOneNobodyWaitsWhenDemandIsSmall) {
  Cluster cluster(1, Odis(true), 60 * kMiB);
  cluster.SetClass(Reserved(ClassId(16), 5 * kMiB));
  Load* modest = cluster.Start({.class_id = ClassId(16), .pace = 20.0 * kMiB});
  cluster.RunTo(20s);
  EXPECT_NEAR(modest->MiBps(0s, 20s), 20, 0.4);
  EXPECT_EQ(cluster.osd().scheduler().State({}).token_rate, 40 * kMiB);
}

TEST(AquaTest, FigureSevenScenarioTwoASlowDeviceDoesNotRaiseTheRate) {
  Cluster cluster(1, Odis(true), 30 * kMiB);
  const std::vector<Load*> writers = RunWriters(&cluster, 0s, 40s);
  EXPECT_NEAR(Sum(writers, 5s, 40s), 30, 0.5);
  EXPECT_EQ(cluster.osd().scheduler().State({}).token_rate, 40 * kMiB);
}

TEST(AquaTest, FigureSevenScenarioThreeWithoutTheMaximizerTheRateIsTheLimit) {
  Cluster cluster(1, Odis(false), 60 * kMiB);
  const std::vector<Load*> writers = RunWriters(&cluster, 0s, 20s);
  EXPECT_NEAR(Sum(writers, 5s, 20s), 40, 0.5);
  EXPECT_EQ(cluster.osd().scheduler().State({}).token_rate, 40 * kMiB);
}

TEST(AquaTest, WithoutQosWritersShareByTheirDepth) {
  SchedulerConfig config = *ApplyProfile("noqos", Odis(false));
  Cluster cluster(1, config, 45 * kMiB);
  const std::vector<Load*> writers = RunWriters(&cluster, 0s, 20s);
  for (const Load* writer : writers) EXPECT_NEAR(writer->MiBps(5s, 20s), 15, 0.75);
}

// A promise for ten seconds: afterwards the class competes like any other.
TEST(AquaTest, AnExpiredPromiseGoesBackToTheRoot) {
  Cluster cluster(1, Odis(false), 60 * kMiB);
  ClassSpec spec = Reserved(ClassId(16), 35 * kMiB);
  spec.reservation_ends = TimePoint{0} + 10s;
  cluster.SetClass(spec);
  cluster.SetClass(testing::Spec(ClassId(17)));
  Load* promised = StartWriter(&cluster, 0);
  Load* other = StartWriter(&cluster, 1);
  cluster.RunTo(20s);
  EXPECT_NEAR(promised->MiBps(2s, 10s), 35, 1);
  EXPECT_NEAR(other->MiBps(2s, 10s), 5, 1);
  EXPECT_NEAR(promised->MiBps(12s, 20s), 20, 1);
}

// A small reader in a class of its own does not queue behind 64 MiB of large writes.
TEST(AquaTest, ASmallReaderBesideLargeWritersKeepsItsRate) {
  SchedulerConfig config = Odis(false);
  config.surplus = SurplusKind::kDsfq;
  config.token_rate = 200 * kMiB;
  for (uint64_t write_bytes : {64 * kKiB, kMiB}) {
    Cluster cluster(1, config, 1024 * kMiB);
    cluster.SetClass(testing::Spec(ClassId(16)));
    cluster.SetClass(testing::Spec(ClassId(17)));
    // Think time as a network would add it: 10,000 requests a second at most.
    Load* reader = cluster.Start(
        {.class_id = ClassId(16), .outstanding = 1, .bytes = 4 * kKiB, .pace = 1e4 * 4096});
    cluster.RunTo(2s);
    const double alone = reader->MiBps(0s, 2s);
    cluster.Start({.class_id = ClassId(17), .outstanding = 64, .bytes = write_bytes});
    cluster.RunTo(6s);
    EXPECT_GE(reader->MiBps(3s, 6s), 0.5 * alone) << write_bytes;
  }
}

}  // namespace
}  // namespace weir::osd::qos
