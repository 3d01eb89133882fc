// The disk model against the numbers it was specified with (osd/qos/RULES.md, Models).
#include "tools/sim/devices/hdd.h"

#include <gtest/gtest.h>

#include "tools/sim/engine/cluster.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::OpKind;

constexpr ClassId kOne{16};

SchedulerConfig Cscan(uint32_t depth) {
  SchedulerConfig base;
  base.depth = depth;
  base.best_effort_min = 0;
  SchedulerConfig config = *ApplyProfile("noqos", base);
  if (depth == 1) config.dispatch = DispatchKind::kFifo;
  return config;
}

// Random reads of 8 KiB over a part of the disk; mean and P90 in ms.
std::pair<double, double> RandomReads(double footprint) {
  const HddModel model = HddModelOf("dtla-307075");
  Cluster cluster(7);
  cluster.AddOsd(Cscan(1), Hdd(model));
  const auto slots = static_cast<uint64_t>(static_cast<double>(model.capacity) * footprint / 8192);
  Load* load = cluster.Start({.class_id = kOne,
                              .outstanding = 1,
                              .bytes = 8192,
                              .shape = [slots](Prng& prng, uint64_t, Io* io) {
                                io->op = OpKind::kRead;
                                io->lba = prng.Uniform(0, slots - 1) * 8192;
                              }});
  cluster.RunTo(200s);
  return {load->MeanLatency(0s, 200s) * 1e3, Quantile(load->Latencies(0s, 200s), .9) * 1e3};
}

TEST(HddTest, RandomReadsTakeWhatTheDataSheetAddsUpTo) {
  const auto [mean, p90] = RandomReads(1);
  EXPECT_NEAR(mean, 13.2, .03 * 13.2);
  EXPECT_NEAR(p90, 18.2, .03 * 18.2);
}

TEST(HddTest, ShortSeeksOnAPartOfTheDisk) {
  const auto [mean, p90] = RandomReads(.4);
  EXPECT_NEAR(mean, 10.6, .03 * 10.6);
  EXPECT_NEAR(p90, 14.7, .03 * 14.7);
}

Load* Sequential(Cluster* cluster, ClassId id, uint64_t start, OpKind op, uint64_t bytes,
                 int outstanding = 1) {
  return cluster->Start({.class_id = id,
                         .outstanding = outstanding,
                         .bytes = bytes,
                         .shape = [=](Prng&, uint64_t n, Io* io) {
                           io->op = op;
                           io->lba = start + n * bytes;
                         }});
}

TEST(HddTest, SequentialReadsComeFromTheReadAhead) {
  Cluster cluster(7);
  cluster.AddOsd(Cscan(1), Hdd(HddModelOf("st34501n")));
  Load* one = Sequential(&cluster, kOne, 1 << 20, OpKind::kRead, 512);
  cluster.RunTo(2s);
  EXPECT_NEAR(one->Iops(1s, 2s), 4500, 5);
  Load* two = Sequential(&cluster, ClassId(17), 1 << 30, OpKind::kRead, 512);
  cluster.RunTo(4s);
  // Each switch costs 9 us: 1 / (1/4500 + 9 us) in all.
  EXPECT_NEAR(one->Iops(3s, 4s) + two->Iops(3s, 4s), 4325, 10);
}

TEST(HddTest, TheWriteCacheAbsorbsABurstAndThenGoesAtTheSpeedOfTheDisk) {
  Cluster cluster(7);
  cluster.AddOsd(Cscan(4), Hdd(HddModelOf("6y080p0")));
  Load* load = Sequential(&cluster, kOne, 0, OpKind::kWrite, 512 * kKiB, 4);
  cluster.RunTo(30s);
  EXPECT_GT(load->Rate(0s, 80ms), 60e6);
  EXPECT_NEAR(load->Rate(5s, 30s), 56e6, 4e6);
}

TEST(HddTest, AnArraySpreadsOverItsDisks) {
  Cluster cluster(7);
  cluster.AddOsd(Cscan(64), Raid0(HddModelOf("dtla-307075"), 4, 64 * kKiB));
  Load* load = cluster.Start({.class_id = kOne,
                              .outstanding = 64,
                              .bytes = 8192,
                              .shape = [](Prng& prng, uint64_t, Io* io) {
                                io->op = OpKind::kRead;
                                io->lba = prng.Uniform(0, 30'000'000) * 8192;
                              }});
  cluster.RunTo(20s);
  EXPECT_GT(load->Iops(2s, 20s), 3.3 * 76);  // four disks of 1 / 13.2 ms, nearly always all busy
}

}  // namespace
}  // namespace weir::sim
