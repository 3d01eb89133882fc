// Goal: attributes that are set at the mount are seen there at once, reach the MDS with the next
// report, and what was written before or after them takes its place in that order.
#include "client/vfs/held_attributes.h"

#include <gtest/gtest.h>

#include <vector>

#include "client/vfs/inode_table.h"

namespace weir::client {
namespace {

constexpr uint32_t kRootUser = 0, kOwner = 1000, kStranger = 1001;

FileAttr HeldBase(uint32_t mode = S_IFREG | 0644) {
  FileAttr attr;
  attr.inode = InodeId(5);
  attr.mode = mode;
  attr.uid = kOwner;
  attr.gid = kOwner;
  attr.version = 1;
  attr.mtime_ns = 10;
  return attr;
}

HeldAttributes Mode(uint32_t mode, int64_t now = 100) {
  HeldAttributes held;
  held.mode = mode;
  held.ctime_ns = now;
  return held;
}

HeldAttributes Modified(int64_t mtime, int64_t now = 100) {
  HeldAttributes held;
  held.mtime_ns = mtime;
  held.ctime_ns = now;
  return held;
}

HeldAttributes Owned(uint32_t uid) {
  HeldAttributes held;
  held.uid = uid;
  held.ctime_ns = 100;
  return held;
}

TEST(HeldAttributesTest, OnlyWhatIsPlainIsJudgedHere) {
  EXPECT_TRUE(MayHold(HeldBase(), Mode(0600), kOwner));
  EXPECT_TRUE(MayHold(HeldBase(), Mode(0600), kRootUser));
  EXPECT_FALSE(MayHold(HeldBase(), Mode(0600), kStranger));
  EXPECT_TRUE(MayHold(HeldBase(), Owned(7), kRootUser));
  EXPECT_FALSE(MayHold(HeldBase(), Owned(kOwner), kOwner)) << "depends on groups";
  EXPECT_TRUE(MayHold(HeldBase(), Modified(5), kOwner));
  EXPECT_FALSE(MayHold(HeldBase(), Modified(5), kStranger)) << "may do so if he may write";
  EXPECT_FALSE(MayHold(HeldBase(), Mode(04755), kRootUser));
  EXPECT_FALSE(MayHold(HeldBase(S_IFREG | S_ISGID | 0755), Mode(0755), kRootUser));
  EXPECT_FALSE(MayHold(HeldBase(S_IFDIR | 0755), Mode(0700), kRootUser));
  FileAttr listed = HeldBase();
  listed.has_acl = true;
  EXPECT_FALSE(MayHold(listed, Mode(0600), kRootUser)) << "its mask follows";
}

TEST(HeldAttributesTest, AListOfOwnerGroupAndOthersIsAMode) {
  std::vector<uint8_t> list = {2, 0, 0, 0};
  for (const auto& [tag, permissions] : {std::pair(1, 6), std::pair(4, 5), std::pair(32, 4)}) {
    for (const int byte : {tag, 0, permissions, 0, 255, 255, 255, 255}) {
      list.push_back(static_cast<uint8_t>(byte));
    }
  }
  EXPECT_EQ(ModeOfAcl(list), 0654u);
  for (const auto& [at, value] : {std::pair(0, 1), std::pair(4, 2), std::pair(6, 8)}) {
    std::vector<uint8_t> other = list;
    other[static_cast<size_t>(at)] = static_cast<uint8_t>(value);
    EXPECT_EQ(ModeOfAcl(other), std::nullopt) << at;
  }
  list.insert(list.end(), 8, 0);
  EXPECT_EQ(ModeOfAcl(list), std::nullopt) << "more entries";
  EXPECT_EQ(ModeOfAcl({}), std::nullopt);
}

TEST(HeldAttributesTest, AreSeenAtOnceAndGoWithTheNextReport) {
  Inode inode{InodeId(5)};
  inode.Update(HeldBase());
  ASSERT_TRUE(inode.Hold(Mode(0600), kOwner, ClassId(16)));
  EXPECT_EQ(inode.attr().mode, S_IFREG | 0600u);
  EXPECT_EQ(inode.attr().ctime_ns, 100);
  EXPECT_EQ(inode.attr().mtime_ns, 10);
  ASSERT_TRUE(inode.Hold(Owned(kStranger), kRootUser, ClassId(16)));
  EXPECT_FALSE(inode.Hold(Mode(0644), kOwner, ClassId(16))) << "given away meanwhile";
  const auto report = inode.BeginReport();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->mtime_ns, 0) << "nothing was written";
  const HeldAttributes told = inode.Sending(*report).held;
  EXPECT_EQ(told.mode, 0600u);
  EXPECT_EQ(told.uid, kStranger);
  EXPECT_EQ(inode.attr().uid, kStranger) << "on its way";
  FileAttr known = HeldBase(S_IFREG | 0600);
  known.uid = kStranger;
  known.version = 2;
  inode.EndReport(*report, known);
  EXPECT_FALSE(inode.has_unreported());
  EXPECT_FALSE(inode.holds_attributes());
  EXPECT_EQ(inode.attr().uid, kStranger);
}

TEST(HeldAttributesTest, ALaterWriteMovesATimeAndAnEarlierOneDoesNot) {
  Inode inode{InodeId(5)};
  inode.Update(HeldBase());
  inode.Wrote(100, 50);
  ASSERT_TRUE(inode.Hold(Modified(20), kOwner, ClassId()));
  EXPECT_EQ(inode.attr().mtime_ns, 20);
  EXPECT_EQ(inode.BeginReport()->mtime_ns, 0);
  inode.Wrote(200, 120);
  EXPECT_EQ(inode.attr().mtime_ns, 120);
  const auto report = inode.BeginReport();
  EXPECT_EQ(report->mtime_ns, 120);
  EXPECT_FALSE(inode.Sending(*report).held.mtime_ns.has_value());
}

// A report that began before the time was set, and waits for its data, must not undo it: not when
// it takes it along, nor when another has told it meanwhile.
TEST(HeldAttributesTest, ATimeSurvivesTheReportOfWhatWasWrittenBefore) {
  for (const bool told_alone : {false, true}) {
    Inode inode{InodeId(5)};
    inode.Update(HeldBase());
    inode.Wrote(100, 50);
    const auto data = inode.BeginReport();
    ASSERT_TRUE(inode.Hold(Modified(20), kOwner, ClassId()));
    FileAttr known = HeldBase();
    known.mtime_ns = 20;
    if (told_alone) {
      const Inode::Report alone = inode.Sending(inode.BeginAttributesReport());
      EXPECT_EQ(alone.held.mtime_ns, 20);
      EXPECT_EQ(alone.size_at_least, 0u) << "that is not stored yet";
      known.version = 2;
      inode.EndReport(alone, known);
      EXPECT_TRUE(inode.has_unreported());
      EXPECT_EQ(inode.attr().size, 100u);
    }
    const Inode::Report sent = inode.Sending(*data);
    EXPECT_EQ(sent.held.mtime_ns.has_value(), !told_alone);
    EXPECT_EQ(sent.mtime_ns, 0);
    known.version = 3;
    known.size = 100;
    inode.EndReport(sent, known);
    EXPECT_EQ(inode.attr().mtime_ns, 20);
    EXPECT_FALSE(inode.has_unreported());
  }
}

TEST(HeldAttributesTest, AFailedReportKeepsThemBelowWhatWasSetSince) {
  Inode inode{InodeId(5)};
  inode.Update(HeldBase());
  inode.Hold(Mode(0600), kOwner, ClassId());
  inode.Hold(Modified(20), kOwner, ClassId());
  const Inode::Report report = inode.Sending(*inode.BeginReport());
  inode.Hold(Mode(0640, 130), kOwner, ClassId());
  inode.FailReport(report);
  EXPECT_EQ(inode.attr().mode, S_IFREG | 0640u);
  const HeldAttributes again = inode.Sending(*inode.BeginReport()).held;
  EXPECT_EQ(again.mode, 0640u);
  EXPECT_EQ(again.mtime_ns, 20);
  EXPECT_EQ(again.ctime_ns, 130);
}

TEST(HeldAttributesTest, AreLostWithTheMountsRightToWriteAndNotWithATruncation) {
  Inode inode{InodeId(5)};
  inode.Update(HeldBase());
  inode.Wrote(100, 50);
  inode.Hold(Mode(0600), kOwner, ClassId());
  FileAttr cut = HeldBase();
  cut.version = 2;
  inode.Resized(cut);
  EXPECT_EQ(inode.size(), 0u);
  EXPECT_EQ(inode.attr().mode, S_IFREG | 0600u);
  EXPECT_TRUE(inode.has_unreported());
  inode.LoseUnreported();
  EXPECT_EQ(inode.attr().mode, S_IFREG | 0644u);
  EXPECT_FALSE(inode.has_unreported());
  inode.Hold(Mode(0640), kOwner, ClassId());  // by a session that may again
  EXPECT_FALSE(inode.IsLost(*inode.BeginReport()));
}

}  // namespace
}  // namespace weir::client
