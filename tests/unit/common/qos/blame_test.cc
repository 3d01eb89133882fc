// Goal: one verdict per picture, the one that an operator would give. Method: pictures in which one
// reason is plainly the largest, and the edges between them.
#include "common/qos/blame.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr ClassId kGold{16}, kHog{17}, kOther{18};
constexpr uint64_t kSecond = 1'000'000'000;

// Ten seconds in which gold always had something under way.
Lately Busy(const OsdClassTimes& gold) {
  Lately lately;
  OsdLately& osd = lately.osds.emplace_back();
  osd.osd = OsdId(1);
  osd.seconds = 10;
  osd.classes[kGold] = gold;
  osd.classes[kGold].active_ns = 10 * kSecond;
  osd.classes[kHog] = {.ops = 1000, .bytes = 900};
  osd.classes[kOther] = {.ops = 9000, .bytes = 100};
  return lately;
}

TEST(BlameTest, TheLargestReasonIsToBlame) {
  const OsdClassTimes limited{.device_ns = 2 * kSecond, .ops = 10, .limit_ns = 9 * kSecond};
  EXPECT_EQ(Judge(Busy(limited), kGold).culprit, Culprit::kLimit);
  const OsdClassTimes slow{.device_ns = 2 * kSecond, .ops = 10, .limit_ns = kSecond};
  EXPECT_EQ(Judge(Busy(slow), kGold).culprit, Culprit::kDisk);
  EXPECT_EQ(Judge(Busy(slow), kGold).osd, OsdId(1));
}

TEST(BlameTest, AWaitForATurnIsSharedOutByWhatWasServedMeanwhile) {
  OsdClassTimes waits{.turn_ns = 9 * kSecond, .device_ns = kSecond, .ops = 10};
  waits.turn_own_bytes = 100;
  waits.turn_others_bytes = 300;
  const Verdict crowded = Judge(Busy(waits), kGold);
  EXPECT_EQ(crowded.culprit, Culprit::kNeighbour);
  EXPECT_EQ(crowded.neighbour, kHog) << "by bytes, not by requests";
  waits.turn_others_bytes = 50;
  EXPECT_EQ(Judge(Busy(waits), kGold).culprit, Culprit::kDisk) << "its own go first";
  waits.turn_others_bytes = 0;
  EXPECT_EQ(Judge(Busy(waits), kGold).culprit, Culprit::kDisk);
}

TEST(BlameTest, WhatIsHeldForTheProcessorsIsNeitherTheDisksNorANeighbours) {
  OsdClassTimes paced{.turn_ns = 9 * kSecond, .ops = 10, .pace_ns = 7 * kSecond};
  paced.turn_own_bytes = 100;
  paced.turn_others_bytes = 300;
  const Verdict verdict = Judge(Busy(paced), kGold);
  EXPECT_EQ(verdict.culprit, Culprit::kProcessors);
  EXPECT_DOUBLE_EQ(verdict.split.token_wait, 0.7);
  EXPECT_DOUBLE_EQ(verdict.split.class_queue, 0.2);
  EXPECT_EQ(WhoIsToBlame(verdict, ""),
            "the processors (osd.1), kept free for a class with a latency bound");
  paced.pace_ns = kSecond;
  EXPECT_EQ(Judge(Busy(paced), kGold).culprit, Culprit::kNeighbour);
}

TEST(BlameTest, ACrowdedDeviceIsTheNeighboursToo) {
  const OsdClassTimes crowded{.device_ns = 8 * kSecond, .ops = 10, .crowd_ns = 6 * kSecond};
  EXPECT_EQ(Judge(Busy(crowded), kGold).culprit, Culprit::kNeighbour);
}

TEST(BlameTest, WhoSeldomAsksIsToBlameHimself) {
  Lately lately = Busy({.ops = 10, .limit_ns = kSecond});
  lately.osds[0].classes[kGold].active_ns = 4 * kSecond;
  EXPECT_EQ(Judge(lately, kGold).culprit, Culprit::kApplication);
  EXPECT_EQ(Judge(lately, ClassId(99)).culprit, Culprit::kNobody);
  lately.mounts.push_back({"host", 10, {.ops = 10, .active_ns = 9 * kSecond}});
  EXPECT_EQ(Judge(lately, kGold).culprit, Culprit::kLimit)
      << "the mount had something all the time";
}

// Goal: what has been sent and stands at no OSD is not "nobody", nor a limit that nobody has.
TEST(BlameTest, WhatNobodyHasIsOnItsWay) {
  Lately lately;
  lately.mounts.push_back({"host", 10, {.active_ns = 10 * kSecond}});
  EXPECT_EQ(Judge(lately, kGold).culprit, Culprit::kNetwork);
  lately.mounts[0].times.window_ns = 50 * kSecond;
  EXPECT_EQ(Judge(lately, kGold).culprit, Culprit::kNetwork) << "others wait behind it";
}

TEST(BlameTest, TheWindowFollowsFromTheRestButTheNetworkDoesNot) {
  Lately lately = Busy({.device_ns = kSecond, .ops = 10, .limit_ns = 2 * kSecond});
  MountLately mount{"host", 10, {.ops = 10, .active_ns = 10 * kSecond}};
  mount.times.window_ns = 500 * kSecond;
  lately.mounts.push_back(mount);
  EXPECT_EQ(Judge(lately, kGold).culprit, Culprit::kLimit);
  EXPECT_DOUBLE_EQ(Judge(lately, kGold).split.client_window, 50);
  lately.mounts[0].times.network_ns = 3 * kSecond;
  EXPECT_EQ(Judge(lately, kGold).culprit, Culprit::kNetwork);
}

TEST(BlameTest, ALimitThatTheMountHoldsIsBlamedLikeThatOfAnOsd) {
  Lately lately = Busy({.device_ns = 2 * kSecond, .ops = 10, .limit_ns = kSecond});
  MountLately mount{"host", 10, {.ops = 10, .active_ns = 10 * kSecond}};
  mount.times.limit_ns = 5 * kSecond;
  mount.times.limited_ns = 4 * kSecond;
  mount.times.network_ns = 3 * kSecond;
  lately.mounts.push_back(mount);
  const Verdict verdict = Judge(lately, kGold);
  EXPECT_EQ(verdict.culprit, Culprit::kLimit);
  EXPECT_DOUBLE_EQ(verdict.split.token_wait, 0.6);
  EXPECT_DOUBLE_EQ(verdict.split.client_window, 0);
  EXPECT_DOUBLE_EQ(verdict.limited_part, 0.4);
}

TEST(BlameTest, SumsOverOsdsAndNamesTheWorst) {
  Lately lately = Busy({.device_ns = kSecond / 2, .ops = 10, .bytes = 1000, .limit_ns = kSecond});
  OsdLately second = lately.osds[0];
  second.osd = OsdId(2);
  second.seconds = 5;
  second.classes[kGold].device_ns = 20 * kSecond;
  lately.osds.push_back(second);
  const Verdict verdict = Judge(lately, kGold);
  EXPECT_EQ(verdict.culprit, Culprit::kDisk);
  EXPECT_EQ(verdict.osd, OsdId(2));
  EXPECT_DOUBLE_EQ(verdict.ops_per_s, 1 + 2);
  EXPECT_DOUBLE_EQ(verdict.bytes_per_s, 100 + 200);
  EXPECT_DOUBLE_EQ(verdict.split.device, 0.05 + 4);
  EXPECT_LE(verdict.active_part, 1);
  EXPECT_EQ(WhoIsToBlame(verdict, ""), "the disk (osd.2)");
}

}  // namespace
}  // namespace weir
