// Profile vd as a whole: the scheduler with surplus `cooperative` before a device, in virtual time.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/osd/qos/virtual_device.h"
#include "tools/sim/devices/uniform.h"
#include "tools/sim/oracles/shadow_disk.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using sim::DeviceShare;
using testing::Cluster;
using testing::Load;
using testing::Spec;

constexpr ClassId kA{16}, kB{17};

SchedulerConfig Vd(uint32_t depth) {
  SchedulerConfig base;
  base.depth = depth;
  return *ApplyProfile("vd", base);
}

ClassSpec Disk(ClassId id, const VirtualDisk& disk) {
  ClassSpec spec = Spec(id);
  spec.disk = disk;
  return spec;
}
ClassSpec Rent(ClassId id, double peak) {
  return Disk(id, {.type = ClassType::kRentADisk, .peak = peak});
}

ClassCounters CountersOf(Cluster* cluster, ClassId id) {
  for (const ClassCounters& counters :
       cluster->osd().scheduler().Counters(cluster->events().now())) {
    if (counters.id == id) return counters;
  }
  return {};
}

TEST(VirtualDisksTest, TimeIsSharedWhateverTheDepth) {
  for (const uint32_t depth : {1u, 4u, 16u}) {
    Cluster cluster(1);
    cluster.AddOsd(Vd(depth), sim::Uniform(.002, .9));
    cluster.SetClass(Rent(kA, .7));
    cluster.SetClass(Rent(kB, .3));
    Load* a = cluster.Start({.class_id = kA, .outstanding = 40, .bytes = 512});
    Load* b = cluster.Start({.class_id = kB, .outstanding = 40, .bytes = 512});
    cluster.RunTo(20s);
    EXPECT_NEAR(DeviceShare(*a, 2s, 20s), .7, .01) << "depth " << depth;
    EXPECT_NEAR(DeviceShare(*b, 2s, 20s), .3, .01) << "depth " << depth;
    for (const ClassId id : {kA, kB}) EXPECT_EQ(CountersOf(&cluster, id).violation_seconds, 0u);
  }
}

SchedulerConfig Unified() {
  SchedulerConfig base;
  base.token_rate = 100 << 20;
  base.best_effort_min = 0;
  return *ApplyProfile("unified", base);
}

// By bytes the first would have 128 times what the second has.
TEST(VirtualDisksTest, TimeIsSharedInTheDefaultProfileWhateverTheSizes) {
  Cluster cluster(1);
  cluster.AddOsd(Unified(), sim::Uniform(.002, .9));
  cluster.SetClass(Rent(kA, .3));
  cluster.SetClass(Rent(kB, .7));
  Load* a = cluster.Start({.class_id = kA, .outstanding = 40, .bytes = 64 << 10});
  Load* b = cluster.Start({.class_id = kB, .outstanding = 40, .bytes = 512});
  cluster.RunTo(20s);
  EXPECT_NEAR(DeviceShare(*a, 2s, 20s), .3, .01);
  EXPECT_NEAR(DeviceShare(*b, 2s, 20s), .7, .01);
  for (const ClassId id : {kA, kB}) EXPECT_EQ(CountersOf(&cluster, id).violation_seconds, 0u);
}

TEST(VirtualDisksTest, AThroughputDiskIsOwedItsRateAndNoMore) {
  Cluster cluster(1);
  cluster.AddOsd(Unified(), sim::Uniform(.002, .9));
  cluster.SetClass(
      Disk(kA, {.type = ClassType::kThroughput, .peak = .5, .throughput_bytes_per_s = 1 << 20}));
  cluster.SetClass(Rent(kB, .5));
  cluster.Start({.class_id = kA, .outstanding = 40, .bytes = 16 << 10});
  Load* b = cluster.Start({.class_id = kB, .outstanding = 40, .bytes = 16 << 10});
  cluster.RunTo(20s);
  EXPECT_NEAR(static_cast<double>(CountersOf(&cluster, kA).guaranteed_bytes) / (20 << 20), 1, .05);
  EXPECT_GT(DeviceShare(*b, 2s, 20s), .5);
  EXPECT_EQ(CountersOf(&cluster, kA).violation_seconds, 0u) << "has its rate, and less of the time";
}

// In the default profile a bound is scheduled, and not only counted.
TEST(VirtualDisksTest, WhoHasTheEarlierBoundGoesFirst) {
  TimePoint now{0};
  Scheduler scheduler(Unified(), now);
  scheduler.SetClass(Disk(kA, {.type = ClassType::kLatency, .peak = .3, .latency = 50ms}), now);
  scheduler.SetClass(Disk(kB, {.type = ClassType::kLatency, .peak = .3, .latency = 10ms}), now);
  std::array<Request, 3> requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].class_id = i == 2 ? kB : kA;
    requests[i].bytes = 256 << 10;
    scheduler.Enqueue(&requests[i], now);
    if (i == 0) {
      ASSERT_EQ(scheduler.Pull(now).request, &requests[0]);
    }
  }
  now += 5ms;
  scheduler.Completed(&requests[0], now);
  EXPECT_EQ(scheduler.Pull(now).request, &requests[2]);
}

// Of the root its time counts, not its bytes: ten times G0 is what it reads.
TEST(VirtualDisksTest, ASequentialDiskLeavesSurplusItsPartOfAStrictGate) {
  SchedulerConfig base;
  base.token_rate = 12 << 20;
  base.best_effort_min = 0;
  SchedulerConfig config = *ApplyProfile("odis", base);
  config.maximizer = false;
  Cluster cluster(1);
  cluster.AddOsd(config, sim::Uniform(.0005, 0));
  cluster.SetClass(Rent(kA, .25));
  cluster.SetClass(Spec(kB));
  Load* a = cluster.Start({.class_id = kA, .outstanding = 8, .bytes = 64 << 10});
  Load* b = cluster.Start({.class_id = kB, .outstanding = 8, .bytes = 64 << 10});
  cluster.RunTo(10s);
  EXPECT_NEAR(DeviceShare(*a, 2s, 10s), .25, .01);
  EXPECT_NEAR(b->MiBps(2s, 10s), 9, .5);
}

TEST(VirtualDisksTest, AnIdleDiskCostsNobodyTheDepth) {
  TimePoint now{0};
  Scheduler scheduler(Unified(), now);
  scheduler.SetClass(Rent(kA, .3), now);
  std::array<Request, 5> requests;
  const auto add = [&](size_t i, ClassId id) {
    requests[i].class_id = id;
    requests[i].bytes = 4 << 10;
    scheduler.Enqueue(&requests[i], now);
  };
  add(0, kA);
  ASSERT_EQ(scheduler.Pull(now).request, &requests[0]);
  add(1, kB);
  add(2, kB);
  EXPECT_EQ(scheduler.Pull(now).request, nullptr) << "whose time would it be?";
  scheduler.Completed(&requests[0], now);
  ASSERT_EQ(scheduler.Pull(now).request, &requests[1]);
  EXPECT_EQ(scheduler.Pull(now).request, nullptr) << "the disk may ask again";
  now += 1s;
  EXPECT_EQ(scheduler.Pull(now).request, &requests[2]);
}

TEST(VirtualDisksTest, OneStallIsNoDebtOfMinutes) {
  TimePoint now{0};
  Scheduler scheduler(Unified(), now);
  scheduler.SetClass(Rent(kB, .5), now);
  ClassSpec promised = Spec(kA);
  promised.reservation = Reservation{.bytes_per_s = 10 << 20};
  scheduler.SetClass(promised, now);
  std::array<Request, 2> requests;
  for (Request& request : requests) {
    request.class_id = kA;
    request.bytes = 4 << 10;
    scheduler.Enqueue(&request, now);
    ASSERT_EQ(scheduler.Pull(now).request, &request);
    EXPECT_TRUE(request.guaranteed);
    now += 5s;
    scheduler.Completed(&request, now);
    now += 1100ms;  // a tenth of it is its own
  }
}

// Without a guarantee stage its rate spaces finish times.
TEST(VirtualDisksTest, UnderFinishTimesAloneADiskHasDeadlines) {
  TimePoint now{0};
  SchedulerConfig base;
  base.token_rate = 100 << 20;
  Scheduler scheduler(*ApplyProfile("vc", base), now);
  scheduler.SetClass(Rent(kA, .25), now);
  Request request;
  request.class_id = kA;
  request.bytes = 256 << 10;
  scheduler.Enqueue(&request, now);
  ASSERT_EQ(scheduler.Pull(now).request, &request);
  EXPECT_EQ(request.finish_time, now + 10ms);
}

TEST(VirtualDisksTest, TheDeviceNeverIdlesWhileSomebodyWaits) {
  Cluster cluster(1);
  cluster.AddOsd(Vd(1), sim::Uniform(.002, .9));
  cluster.SetClass(Rent(kA, .1));
  cluster.Start({.class_id = kA, .outstanding = 4, .bytes = 512});
  cluster.Start({.class_id = kBestEffort, .outstanding = 1, .bytes = 512, .think = 20ms});
  cluster.RunTo(10s);
  EXPECT_FALSE(cluster.osd().saw_idle_while_queued());
}

TEST(VirtualDisksTest, EntitledServiceCountsAsGuaranteedAndSpareAsSurplus) {
  Cluster cluster(1);
  cluster.AddOsd(Vd(1), sim::Uniform(.002, 0));
  cluster.SetClass(Rent(kA, .25));
  cluster.Start({.class_id = kA, .outstanding = 4, .bytes = 1000});
  cluster.RunTo(10s);
  const ClassCounters counters = CountersOf(&cluster, kA);
  EXPECT_NEAR(static_cast<double>(counters.guaranteed_bytes), .25 * 5e6, 1e4);
  EXPECT_NEAR(static_cast<double>(counters.surplus_bytes), .75 * 5e6, 1e4);
}

TEST(VirtualDisksTest, LateRequestsAreCounted) {
  Cluster cluster(1);
  cluster.AddOsd(Vd(1), sim::Uniform(.010, 0));
  cluster.SetClass(Disk(kA, {.type = ClassType::kLatency, .peak = 1, .latency = 35ms}));
  cluster.Start({.class_id = kA, .outstanding = 3, .bytes = 512});
  cluster.RunTo(1s);
  EXPECT_EQ(CountersOf(&cluster, kA).deadline_misses, 0u);
  cluster.SetClass(Disk(kA, {.type = ClassType::kLatency, .peak = 1, .latency = 25ms}));
  cluster.RunTo(2s);
  EXPECT_GE(CountersOf(&cluster, kA).deadline_misses, 95u);
}

TEST(VirtualDisksTest, ALimitHoldsAVirtualDiskToo) {
  Cluster cluster(1);
  cluster.AddOsd(Vd(1), sim::Uniform(.001, 0));
  ClassSpec limited = Rent(kA, .75);
  limited.limit_bytes_per_s = 100 * 4096;
  cluster.SetClass(limited);
  cluster.SetClass(Rent(kB, .25));
  Load* a = cluster.Start({.class_id = kA, .outstanding = 8, .bytes = 4096});
  Load* b = cluster.Start({.class_id = kB, .outstanding = 8, .bytes = 4096});
  cluster.RunTo(20s);
  EXPECT_NEAR(a->Iops(2s, 20s), 100, 1);
  EXPECT_NEAR(b->Iops(2s, 20s), 900, 2);
  // What it could not use is no credit.
  limited.limit_bytes_per_s.reset();
  cluster.SetClass(limited);
  cluster.RunTo(22s);
  EXPECT_NEAR(b->Iops(20s, 22s), 250, 10);
}

TEST(VirtualDisksTest, ContractsChangeWhileRequestsWait) {
  Cluster cluster(1);
  cluster.AddOsd(Vd(1), sim::Uniform(.001, .5));
  cluster.SetClass(Rent(kA, .5));
  cluster.SetClass(Rent(kB, .5));
  Load* a = cluster.Start({.class_id = kA, .outstanding = 8, .bytes = 512});
  cluster.Start({.class_id = kB, .outstanding = 8, .bytes = 512});
  cluster.RunTo(5s);
  EXPECT_NEAR(DeviceShare(*a, 1s, 5s), .5, .01);
  cluster.SetClass(Rent(kB, .2));
  cluster.SetClass(Disk(kA, {.type = ClassType::kLatency, .peak = .8, .latency = 5ms}));
  cluster.RunTo(10s);
  EXPECT_NEAR(DeviceShare(*a, 6s, 10s), .8, .01);
  // Another profile and back: nothing is lost, and shares hold again.
  cluster.Configure(*ApplyProfile("sfq", Vd(1)));
  cluster.RunTo(15s);
  EXPECT_NEAR(DeviceShare(*a, 11s, 15s), .5, .02);
  cluster.Configure(Vd(1));
  cluster.RunTo(20s);
  EXPECT_NEAR(DeviceShare(*a, 16s, 20s), .8, .01);
}

// A guarantee stage before virtual disks: what it gives is charged while the disk is entitled, and
// never runs its clock far ahead, so the share is there at once when the promise ends.
TEST(VirtualDisksTest, APromiseBeyondTheShareIsNoDebt) {
  Cluster cluster(1);
  SchedulerConfig config = Vd(1);
  config.guarantee = GuaranteeKind::kHtb;
  config.token_rate = 1000 * 4096;
  config.best_effort_min = 0;
  cluster.AddOsd(config, sim::Uniform(.001, 0));
  ClassSpec promised = Rent(kA, .2);
  promised.reservation = Reservation{800 * 4096, ReservationScope::kOsd, std::nullopt};
  cluster.SetClass(promised);
  cluster.SetClass(Rent(kB, .8));
  Load* a = cluster.Start({.class_id = kA, .outstanding = 8, .bytes = 4096});
  cluster.Start({.class_id = kB, .outstanding = 8, .bytes = 4096});
  cluster.RunTo(10s);
  EXPECT_NEAR(a->Iops(1s, 10s), 800, 20);
  promised.reservation.reset();
  cluster.SetClass(promised);
  cluster.RunTo(13s);
  EXPECT_NEAR(a->Iops(10s + 100ms, 13s), 200, 20);
}

}  // namespace
}  // namespace weir::osd::qos
