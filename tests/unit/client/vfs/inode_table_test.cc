// Goal: inodes live exactly as long as the kernel or we refer to them, and what was written here is
// seen here until the MDS knows it.
#include "client/vfs/inode_table.h"

#include <gtest/gtest.h>

#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

FileAttr AttrOf(uint64_t version, uint64_t size, int64_t mtime_ns = 0) {
  FileAttr attr;
  attr.inode = InodeId(5);
  attr.mode = S_IFREG | 0644;
  attr.version = version;
  attr.size = size;
  attr.mtime_ns = mtime_ns;
  return attr;
}

TEST(InodeTableTest, AnInodeLeavesWithItsLastLookupAndPin) {
  InodeTable table;
  table.Lookup(InodeId(5));
  table.Lookup(InodeId(5));
  table.Pin(InodeId(5));
  table.Forget(InodeId(5), 1);
  ASSERT_NE(table.Find(InodeId(5)), nullptr);
  table.Forget(InodeId(5), 1);
  ASSERT_NE(table.Find(InodeId(5)), nullptr) << "still pinned";
  table.Unpin(InodeId(5));
  EXPECT_EQ(table.Find(InodeId(5)), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(InodeTableTest, AForgetOfMoreThanWasLookedUpIsHarmless) {
  InodeTable table;
  table.Lookup(InodeId(5));
  table.Forget(InodeId(5), 100);
  table.Forget(InodeId(6), 1);
  EXPECT_EQ(table.size(), 0u);
}

TEST(InodeTest, LocalWritesLieOverTheMdsUntilReported) {
  Inode inode{InodeId(5)};
  inode.Update(AttrOf(1, 100, 10));
  inode.Wrote(250, 20);
  EXPECT_EQ(inode.size(), 250u);
  EXPECT_EQ(inode.Update(AttrOf(2, 120, 15)).size, 250u) << "another mount grew it less";
  const auto report = inode.BeginReport();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->size_at_least, 250u);
  inode.Wrote(300, 30);  // while the report is on its way
  inode.EndReport(*report, AttrOf(3, 250, 20));
  EXPECT_EQ(inode.size(), 300u);
  EXPECT_TRUE(inode.has_unreported());
  inode.EndReport(*inode.BeginReport(), AttrOf(4, 300, 30));
  EXPECT_FALSE(inode.has_unreported());
  EXPECT_FALSE(inode.BeginReport().has_value());
}

// Goal: the time of a write is shown at once, whatever was set before it.
TEST(InodeTest, AWriteMovesATimeThatLiesAhead) {
  Inode inode{InodeId(5)};
  FileAttr set = AttrOf(1, 100, 5000);
  set.ctime_ns = 40;
  inode.Update(set);
  EXPECT_EQ(inode.attr().mtime_ns, 5000);
  inode.Wrote(10, 50);
  EXPECT_EQ(inode.attr().mtime_ns, 50);
  EXPECT_EQ(inode.attr().ctime_ns, 50);
  FileAttr elsewhere = AttrOf(2, 100, 60);
  elsewhere.ctime_ns = 60;
  EXPECT_EQ(inode.Update(elsewhere).mtime_ns, 60) << "a later write of another mount";
}

TEST(InodeTest, SetIdBitsFallAtOnce) {
  Inode inode{InodeId(2)};
  FileAttr attr = AttrOf(1, 100);
  attr.mode = S_IFREG | S_ISUID | S_ISGID | 0755;
  inode.Update(attr);
  inode.Wrote(10, 5);
  EXPECT_EQ(inode.attr().mode, attr.mode);  // by somebody who may
  inode.Wrote(10, 6, {.set_ids = true});
  EXPECT_EQ(inode.attr().mode, S_IFREG | 0755u);
}

TEST(InodeTest, OnlyWhatIsThereIsLost) {
  Inode inode{InodeId(2)};
  FileAttr attr = AttrOf(1, 100);
  attr.mode = S_IFREG | 0755;
  attr.gid = 7;
  inode.Update(attr);
  const RightsLost all{.set_ids = true, .capability = true};
  EXPECT_FALSE(inode.MayLose(all));
  attr.version = 2;
  attr.may_have_capability = true;
  inode.Update(attr);
  EXPECT_TRUE(inode.MayLose(all));
  EXPECT_FALSE(inode.MayLose({.set_ids = true}));
  attr.version = 3;
  attr.may_have_capability = false;
  attr.mode = S_IFREG | S_ISGID | 0666;
  inode.Update(attr);
  EXPECT_FALSE(inode.MayLose({.capability = true}));
  wire::Caller caller;
  caller.set_gid(8);
  EXPECT_TRUE(inode.Loses(all, caller));
  caller.add_groups(7);
  EXPECT_FALSE(inode.Loses(all, caller)) << "set-gid without execution stays when the group is his";
}

TEST(InodeTest, EveryByteOfSpaceIsReportedOnce) {
  Inode inode{InodeId(2)};
  inode.Wrote(8192, 1, {}, {}, {.wrote = 8192});
  const auto first = inode.BeginReport();
  inode.Wrote(4096, 2, {}, {}, {.wrote = 4096, .freed = 100});
  const auto second = inode.BeginReport();
  EXPECT_EQ(first->space.wrote, 8192u);
  EXPECT_EQ(second->space.wrote, 4096u);
  EXPECT_EQ(inode.attr().blocks, 16u);  // no more than the size has
  inode.FailReport(*second);
  inode.EndReport(*first, AttrOf(2, 8192));
  const auto again = inode.BeginReport();
  EXPECT_EQ(again->space.wrote, 4096u);
  EXPECT_EQ(again->space.freed, 100u);
  inode.EndReport(*again, AttrOf(3, 8192));
  EXPECT_FALSE(inode.BeginReport().has_value());
}

TEST(InodeTest, ATruncationTakesAwayWhatLayOver) {
  Inode inode{InodeId(5)};
  inode.Update(AttrOf(1, 0));
  inode.Wrote(1000, 20);
  inode.Resized(AttrOf(2, 10));
  EXPECT_EQ(inode.size(), 10u);
  EXPECT_FALSE(inode.has_unreported());
  inode.Wrote(20, 30);
  EXPECT_EQ(inode.size(), 20u) << "the size before the truncation must not come back";
}

TEST(InodeTest, AnOlderReplyThatComesLateChangesNothing) {
  Inode inode{InodeId(5)};
  inode.Update(AttrOf(7, 70));
  EXPECT_EQ(inode.Update(AttrOf(6, 60)).size, 70u);
}

TEST(InodeTest, PagesSurviveAnOpenOnlyIfNobodyElseChangedTheFile) {
  Inode inode{InodeId(5)};
  inode.Update(AttrOf(1, 0));
  EXPECT_FALSE(inode.SeenAtOpen(1));
  inode.Wrote(10, 1);
  inode.EndReport(*inode.BeginReport(), AttrOf(2, 10));
  EXPECT_TRUE(inode.SeenAtOpen(2)) << "only this mount wrote";
  inode.Wrote(20, 2);
  inode.EndReport(*inode.BeginReport(), AttrOf(4, 20));  // 3 was somebody else
  EXPECT_FALSE(inode.SeenAtOpen(4));
}

TEST(InodeTest, WhatTheMdsAllowedHoldsUntilTheFileIsCut) {
  Inode inode{InodeId(5)};
  inode.Update(AttrOf(1, 100));
  EXPECT_EQ(inode.allowed_end(), 100u);
  inode.Allow(300);
  inode.Allow(200);
  EXPECT_EQ(inode.allowed_end(), 300u);
  inode.Resized(AttrOf(2, 50));
  EXPECT_EQ(inode.allowed_end(), 50u);
  inode.Allow(80);
  inode.ForgetAllowed();
  EXPECT_EQ(inode.allowed_end(), 50u);
}

TEST(InodeTableTest, KnowsItsDirectories) {
  InodeTable table;
  for (uint64_t id = 1; id <= 6; ++id) {
    FileAttr attr = AttrOf(1, 0);
    attr.mode = id <= 4 ? S_IFDIR : S_IFREG;
    table.Update(table.Lookup(InodeId(id)), attr);
  }
  EXPECT_EQ(table.Directories(10).size(), 4u);
  EXPECT_EQ(table.Directories(3).size(), 3u);
}

// Goal: the list ends with what it lists, also where somebody still has the inode and hears of it.
TEST(InodeTableTest, ADirectoryThatHasLeftIsListedNoMore) {
  InodeTable table;
  FileAttr attr = AttrOf(1, 0);
  attr.mode = S_IFDIR;
  const InodePtr left = table.Lookup(InodeId(5));
  table.Update(left, attr);
  table.Forget(InodeId(5), 1);
  EXPECT_TRUE(table.Directories(10).empty());
  const InodePtr early = table.Lookup(InodeId(6));
  table.Forget(InodeId(6), 1);
  table.Update(early, attr);
  EXPECT_TRUE(table.Directories(10).empty()) << "it would never go";
  const InodePtr back = table.Lookup(InodeId(5));
  EXPECT_TRUE(table.Directories(10).empty()) << "nothing is known of it yet";
  table.Update(left, attr);
  table.Update(back, attr);
  EXPECT_EQ(table.Directories(10), std::vector<InodeId>{InodeId(5)});
}

TEST(InodeTest, AnErrorIsGivenOnceToEachWhoHadItOpenAndToOneOfThoseWhoComeLater) {
  Inode inode{InodeId(5)};
  std::atomic<uint64_t> one{inode.ErrorMark()}, two{inode.ErrorMark()};
  inode.RememberError(Status(ErrorCode::kNoSpace, "first"));
  inode.RememberError(Status(ErrorCode::kIo, "second"));
  std::atomic<uint64_t> later{inode.ErrorMark()};
  EXPECT_TRUE(inode.has_error());
  EXPECT_EQ(inode.TakeError(&later).code(), ErrorCode::kNoSpace) << "nobody has heard of it";
  EXPECT_FALSE(inode.has_error());
  EXPECT_EQ(inode.TakeError(&one).code(), ErrorCode::kNoSpace);
  EXPECT_TRUE(inode.TakeError(&one).ok());
  std::atomic<uint64_t> last{inode.ErrorMark()};
  EXPECT_TRUE(inode.TakeError(&last).ok());
  inode.NotHeard(Status(ErrorCode::kNoSpace, "first"));
  EXPECT_TRUE(inode.TakeError(&one).ok()) << "twice";
  std::atomic<uint64_t> next{inode.ErrorMark()};
  EXPECT_EQ(inode.TakeError(&next).code(), ErrorCode::kNoSpace);
  inode.RememberError(Status(ErrorCode::kIo, "third"));
  for (auto* mark : {&one, &two, &later, &last}) {
    EXPECT_EQ(inode.TakeError(mark).code(), ErrorCode::kIo);
  }
}

TEST(InodeTest, WhatAnEvictionTookIsToldToThoseOnlyWhoHadItOpenThen) {
  const auto kFenced = Inode::Hears::kFenced;
  Inode inode{InodeId(5)};
  std::atomic<uint64_t> before{inode.ErrorMark()}, after{inode.ErrorMark()};
  inode.RememberError(Status(ErrorCode::kStale, "a late write"));
  EXPECT_FALSE(inode.has_error());
  EXPECT_TRUE(inode.TakeError(&after).ok());
  EXPECT_EQ(inode.errors(Inode::Hears::kAll), 0U);
  EXPECT_EQ(inode.errors(kFenced), 1U);
  EXPECT_EQ(inode.TakeError(&before, kFenced).code(), ErrorCode::kStale);
  EXPECT_TRUE(inode.TakeError(&before, kFenced).ok()) << "twice";
  inode.RememberError(Status(ErrorCode::kIo, "lost locks"), kFenced);
  inode.RememberError(Status(ErrorCode::kNoSpace, "of all"));
  EXPECT_EQ(inode.TakeError(&after).code(), ErrorCode::kNoSpace);
  EXPECT_FALSE(inode.TakeError(&before, kFenced).ok());
}

// Prevents: whoever opened the file after an eviction hears of a failed write as if he had been
// evicted himself, because who was has heard of the failure first, and lost a late write then.
TEST(InodeTest, WhatFailedForAllIsNotToldAsWhatAnEvictionTook) {
  const auto kFenced = Inode::Hears::kFenced;
  Inode inode{InodeId(5)};
  std::atomic<uint64_t> before{inode.ErrorMark()}, after{inode.ErrorMark()};
  inode.RememberError(Status(ErrorCode::kIo, "of all"));
  EXPECT_EQ(inode.TakeError(&before, kFenced).code(), ErrorCode::kIo);
  inode.RememberError(Status(ErrorCode::kStale, "a late write"));
  EXPECT_EQ(inode.TakeError(&after).code(), ErrorCode::kIo);
  EXPECT_TRUE(inode.TakeError(&after).ok()) << "twice";
  EXPECT_EQ(inode.TakeError(&before, kFenced).code(), ErrorCode::kStale);
}

TEST(InodeTest, WhatAnEvictionTookIsNotToldAsWhatFailedForAll) {
  const auto kFenced = Inode::Hears::kFenced;
  Inode inode{InodeId(5)};
  std::atomic<uint64_t> before{inode.ErrorMark()}, after{inode.ErrorMark()};
  inode.RememberError(Status(ErrorCode::kStale, "a late write"));
  inode.RememberError(Status(ErrorCode::kNoSpace, "of all"));
  EXPECT_EQ(inode.TakeError(&before, kFenced).code(), ErrorCode::kStale);
  EXPECT_EQ(inode.TakeError(&after).code(), ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace weir::client
