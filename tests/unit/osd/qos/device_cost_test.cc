// Costs in device time, and what deadlines and depth do in the unified pipeline.
#include <gtest/gtest.h>

#include "tests/unit/osd/qos/virtual_device.h"
#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/simple.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Spec;

constexpr ClassId kRandom{16}, kSequential{17};

SchedulerConfig Config(std::string_view profile, CostKind cost, uint32_t depth) {
  SchedulerConfig base;
  base.depth = depth;
  base.best_effort_min = 0;
  SchedulerConfig config = *ApplyProfile(profile, base);
  config.cost = cost;
  return config;
}

// Seconds of the device that each of two equal classes gets: small requests against large ones.
std::pair<double, double> DeviceSeconds(CostKind cost) {
  sim::Cluster cluster(1);
  cluster.AddOsd(Config("sfq", cost, 1), sim::Hdd(sim::HddModelOf("dtla-307075")));
  cluster.SetClass(Spec(kRandom));
  cluster.SetClass(Spec(kSequential));
  const auto load = [&](ClassId id, uint64_t bytes) {
    return cluster.Start(
        {.class_id = id, .outstanding = 8, .shape = [bytes](Prng& prng, uint64_t, sim::Io* io) {
           io->op = OpKind::kRead;
           io->bytes = bytes;
           io->lba = prng.Uniform(0, 1'000'000) * 4096;
         }});
  };
  const Load* small = load(kRandom, 4 * kKiB);
  const Load* large = load(kSequential, kMiB);
  cluster.RunTo(60s);
  const auto seconds = [](const Load* one) {
    double sum = 0;
    for (const sim::Completion& done : one->completions()) sum += ToSeconds(done.device_time);
    return sum;
  };
  return {seconds(small), seconds(large)};
}

// Bytes flatter small random requests, requests large ones; device time is fair to both.
TEST(DeviceCostTest, EqualWeightsAreEqualDeviceTime) {
  const auto [small_by_bytes, large_by_bytes] = DeviceSeconds(CostKind::kBytes);
  EXPECT_GT(small_by_bytes, 10 * large_by_bytes);
  const auto [small_by_count, large_by_count] = DeviceSeconds(CostKind::kRequests);
  EXPECT_LT(small_by_count, 0.4 * large_by_count);
  const auto [small, large] = DeviceSeconds(CostKind::kDeviceTime);
  EXPECT_NEAR(small / large, 1, 0.02);
}

// A class that asked for a bound under `unified` has it beside a flood, and the flood the rest.
TEST(UnifiedTest, ALatencyBoundHoldsBesideAFlood) {
  constexpr ClassId kBound{18};
  for (const bool bound : {false, true}) {
    sim::Cluster cluster(2);
    SchedulerConfig config = Config("unified", CostKind::kBytes, 0);
    config.token_rate = 20 * kMiB;
    config.iops_max = 80;  // of 256 KiB
    cluster.AddOsd(config, sim::Hdd(sim::HddModelOf("dtla-307075")));
    ClassSpec spec = Spec(kBound, 0.01);  // a share of next to nothing
    spec.min_weight = 0.001;
    if (bound) {
      spec.service.bound = 150ms;
      spec.service.max_pending = 1;
    }
    cluster.SetClass(spec);
    cluster.SetClass(Spec(kSequential));
    cluster.Start({.class_id = kSequential, .outstanding = 64, .bytes = 256 * kKiB});
    Load* load = cluster.Start(
        {.class_id = kBound, .bytes = 256 * kKiB, .gap = [](Prng&) { return Duration(200ms); }});
    cluster.RunTo(30s);
    std::vector<double> latencies = load->Latencies(5s, 30s);
    const double p95 = sim::Quantile(std::move(latencies), .95);
    if (bound) {
      EXPECT_LT(p95, 0.150);
    } else {
      EXPECT_GT(p95, 0.3);
    }
  }
}

}  // namespace
}  // namespace weir::osd::qos
