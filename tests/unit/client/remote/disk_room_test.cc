// Goal: the least that any disk said lately is known, also when it rises again. Method: what disks
// say, at times that the test chooses.
#include "client/remote/disk_room.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

constexpr OsdId kOne{1};
constexpr OsdId kTwo{2};
const TierName kFast = *TierName::Parse("ssd");

TEST(DiskRoomTest, IsTheLeastOfAllDisksAsTheySaidLast) {
  DiskRoom room;
  const TimePoint now;
  EXPECT_EQ(room.least(), UINT64_MAX) << "nobody has said anything";
  room.Told(kOne, {}, 100, now);
  room.Told(kTwo, {}, 300, now);
  EXPECT_EQ(room.least(), 100u);
  room.Told(kTwo, kFast, 50, now);
  EXPECT_EQ(room.least(), 50u) << "another disk of the same OSD";
  room.Told(kTwo, kFast, 400, now);
  EXPECT_EQ(room.least(), 100u);
  room.Told(kOne, {}, 500, now);
  EXPECT_EQ(room.least(), 300u) << "what was the least is so no more";
}

TEST(DiskRoomTest, ForgetsWhatItWasToldLongAgo) {
  DiskRoom room;
  const TimePoint start;
  room.Told(kOne, {}, 0, start);
  room.Told(kTwo, {}, 300, start + DiskRoom::kValid / 2);
  room.Forget(start + DiskRoom::kValid);
  EXPECT_EQ(room.least(), 0u);
  room.Forget(start + DiskRoom::kValid + std::chrono::nanoseconds(1));
  EXPECT_EQ(room.least(), 300u);
  room.Forget(start + DiskRoom::kValid * 2);
  EXPECT_EQ(room.least(), UINT64_MAX);
}

}  // namespace
}  // namespace weir::client
