#include "tools/sim/oracles/shadow_disk.h"

#include <gtest/gtest.h>

#include "tools/sim/devices/tiered.h"
#include "tools/sim/devices/uniform.h"
#include "tools/sim/engine/cluster.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

TEST(ShadowDiskTest, APrivateDiskOfHalfTheSpeedTakesTwiceAsLongAndQueues) {
  ShadowDisk half(.5);
  const TimePoint start{};
  EXPECT_EQ(half.Serve(start, 10ms), start + 20ms);
  EXPECT_EQ(half.Serve(start + 5ms, 10ms), start + 40ms);
  EXPECT_EQ(half.Serve(start + 100ms, 1ms), start + 102ms);
}

TEST(ShadowDiskTest, JudgesOnlyWhatThePrivateDiskWouldHaveDoneInTime) {
  Cluster cluster(1);
  SchedulerConfig config = *ApplyProfile("vd", {});
  cluster.AddOsd(config, Uniform(.010, 0));
  // Ten at once on a device of their own: the n-th is done after n * 10 ms.
  Load* load = cluster.Start({.class_id = ClassId(16), .outstanding = 10, .bytes = 512});
  cluster.RunTo(1ms);
  load->Stop();
  cluster.RunTo(1s);
  const LatencyVerdict whole = JudgeLatency(*load, 1, 50ms, 0ms);
  EXPECT_EQ(whole.requests, 10u);
  EXPECT_EQ(whole.late, 5u);
  EXPECT_EQ(whole.faults, 0u);
  // A disk ten times as fast would have kept the bound for all.
  EXPECT_EQ(JudgeLatency(*load, 10, 50ms, 0ms).faults, 5u);
  EXPECT_EQ(JudgeLatency(*load, 10, 50ms, 30ms).faults, 2u);
  EXPECT_NEAR(DeviceShare(*load, 0ms, 200ms), .5, 1e-6);
  EXPECT_NEAR(PeakEquivalent(*load, 4500, 0ms, 200ms), 2250, 1e-3);
}

TEST(TieredDeviceTest, TiersWorkAtTheSameTimeAndAreMeasuredApart) {
  Cluster cluster(1);
  cluster.AddOsd(*ApplyProfile("baa", {}), Tiered({Uniform(.010, 0), Uniform(.001, 0)}));
  const auto& device = static_cast<TieredDevice&>(cluster.osd().device());
  Load* slow = cluster.Start({.class_id = ClassId(16), .outstanding = 1, .bytes = 512});
  Load* fast = cluster.Start({.class_id = ClassId(17),
                              .outstanding = 1,
                              .bytes = 512,
                              .shape = [](Prng&, uint64_t, Io* io) { io->tier = 1; }});
  cluster.RunTo(994500us);
  slow->Stop();
  fast->Stop();
  cluster.RunTo(2s);
  EXPECT_EQ(slow->done(), 100u);
  EXPECT_EQ(fast->done(), 995u);
  EXPECT_EQ(device.completed(0), 100u);
  EXPECT_EQ(device.completed(1), 995u);
  EXPECT_NEAR(ToSeconds(device.busy(0)), 1, .001);
  EXPECT_NEAR(ToSeconds(device.busy(1)), .995, .002);
}

}  // namespace
}  // namespace weir::sim
