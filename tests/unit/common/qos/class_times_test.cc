#include "common/qos/class_times.h"

#include <gtest/gtest.h>

#include "common/placement/times_wire.h"
#include "common/wire/mds.pb.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

OsdClassTimes AllDifferent() {
  OsdClassTimes times;
  times.ops = 1;
  times.bytes = 2;
  times.limit_ns = 3000;
  times.turn_ns = 4000;
  times.rate_ns = 5000;
  times.pace_ns = 13000;
  times.owed_ns = 6000;
  times.device_ns = 7000;
  times.crowd_ns = 8000;
  times.turn_own_bytes = 9;
  times.turn_others_bytes = 10;
  times.limited_ns = 11000;
  times.active_ns = 12000;
  return times;
}

TEST(ClassTimesTest, EveryFieldIsSummedAndSurvivesTheWire) {
  OsdClassTimes twice = AllDifferent();
  twice += AllDifferent();
  EXPECT_EQ(twice.turn_others_bytes, 20u);
  twice -= AllDifferent();
  EXPECT_EQ(twice, AllDifferent());
  const MountClassTimes mount{.ops = 1,
                              .bytes = 2,
                              .window_ns = 3000,
                              .limit_ns = 6000,
                              .network_ns = 4000,
                              .limited_ns = 7000,
                              .active_ns = 5000};
  MountClassTimes both = mount;
  both += mount;
  EXPECT_EQ(both.limit_ns + both.limited_ns, 26'000u);
  Lately lately;
  lately.osds.push_back({OsdId(3), 9.5, {{ClassId(16), AllDifferent()}, {ClassId(0), {}}}});
  lately.mounts.push_back({"host:web", 8, mount, KernelPath::kUring});
  wire::WhyReply message;
  ToWire(ClassId(16), lately, &message);
  EXPECT_EQ(message.class_id(), 16u);
  const Lately back = FromWire(message);
  ASSERT_EQ(back.osds.size(), 1u);
  EXPECT_EQ(back.osds[0].osd, OsdId(3));
  EXPECT_EQ(back.osds[0].classes, lately.osds[0].classes);
  ASSERT_EQ(back.mounts.size(), 1u);
  EXPECT_EQ(back.mounts[0].client, "host:web");
  EXPECT_EQ(back.mounts[0].path, KernelPath::kUring);
  EXPECT_EQ(back.mounts[0].times, mount);
}

TEST(ClassTimesTest, AnIdleClassFallsSilentAndComesBack) {
  FreshRows fresh;
  TimePoint now{0};
  EXPECT_FALSE(fresh.IsFresh(ClassId(16), 0, now)) << "never had I/O";
  EXPECT_TRUE(fresh.IsFresh(ClassId(16), 5, now));
  now += FreshRows::kKeep - 1ns;
  EXPECT_TRUE(fresh.IsFresh(ClassId(16), 5, now)) << "the last report may be lost";
  now += 1ns;
  EXPECT_FALSE(fresh.IsFresh(ClassId(16), 5, now));
  EXPECT_TRUE(fresh.IsFresh(ClassId(16), 6, now));
}

}  // namespace
}  // namespace weir
