// Sizes, times, and what a truncation does to OSDs and to those who wait for it.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class SetAttrTest : public MdsFixture {
 protected:
  wire::SetAttrRequest Size(uint64_t inode, uint64_t size) {
    wire::SetAttrRequest request = Change(inode);
    request.set_size(size);
    return request;
  }
  void Write(uint64_t inode, uint64_t end, uint64_t grown_bytes) {
    wire::WroteRequest request;
    request.set_inode(inode);
    request.set_size_at_least(end);
    request.mutable_space()->set_wrote_bytes(grown_bytes);
    Ask<wire::EntryReply>(wire::MDS_WROTE, request);
  }
};

TEST_F(SetAttrTest, WroteOnlyGrowsAndTimesNeverGoBack) {
  const uint64_t f = CreateOpen(kRoot, "f");
  clock.Advance(1s);
  const auto grown = Grow(f, 5000);
  EXPECT_EQ(grown.attr().size(), 5000u);
  EXPECT_EQ(grown.attr().blocks(), 16u);
  EXPECT_EQ(grown.attr().mtime_ns(), clock.WallNow().ns);
  EXPECT_GT(grown.attr().version(), 1u);
  wire::WroteRequest old;
  old.set_inode(f);
  old.set_size_at_least(100);
  old.set_mtime_ns(1);
  const auto after = Ask<wire::EntryReply>(wire::MDS_WROTE, old);
  EXPECT_EQ(after.attr().size(), 5000u);
  EXPECT_EQ(after.attr().mtime_ns(), clock.WallNow().ns);
  old.set_size_at_least(uint64_t{1} << 63);
  EXPECT_EQ(Code(wire::MDS_WROTE, old), ErrorCode::kFileTooBig);
}

// Goal: attributes that a mount held come with its report; what was written before them moves no
// time that they set, and a report of them alone moves neither size nor mtime.
TEST_F(SetAttrTest, WroteBringsWhatWasSetAtTheMount) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 5000);
  const int64_t mtime = clock.WallNow().ns;
  clock.Advance(1s);
  wire::WroteRequest told;
  told.set_inode(f);
  told.mutable_space();
  told.mutable_attributes()->set_mode(0601);
  told.mutable_attributes()->set_ctime_ns(mtime + 5);
  auto after = Ask<wire::EntryReply>(wire::MDS_WROTE, told).attr();
  EXPECT_EQ(after.mode(), S_IFREG | 0601u);
  EXPECT_EQ(after.mtime_ns(), mtime);
  EXPECT_EQ(after.ctime_ns(), mtime + 5) << "when it was set";
  EXPECT_EQ(after.size(), 5000u);
  EXPECT_EQ(after.blocks(), 16u);
  told.mutable_attributes()->set_ctime_ns(mtime + 3);
  after = Ask<wire::EntryReply>(wire::MDS_WROTE, told).attr();
  EXPECT_EQ(after.ctime_ns(), mtime + 5) << "it never goes back";
  told.clear_attributes();
  told.set_size_at_least(8192);
  told.set_mtime_ns(clock.WallNow().ns);
  told.mutable_attributes()->set_uid(17);
  told.mutable_attributes()->set_gid(18);
  told.mutable_attributes()->set_atime_ns(5);
  told.mutable_attributes()->set_mtime_ns(6);
  after = Ask<wire::EntryReply>(wire::MDS_WROTE, told).attr();
  EXPECT_EQ(after.size(), 8192u);
  EXPECT_EQ(std::pair(after.uid(), after.gid()), std::pair(17u, 18u));
  EXPECT_EQ(std::pair(after.atime_ns(), after.mtime_ns()), std::pair(int64_t{5}, int64_t{6}));
  EXPECT_EQ(after.mode(), S_IFREG | 0601u);
}

// Goal: the time of a change is that of when it was made, not of when the MDS heard of it; it
// neither goes back nor lies ahead of what happens next.
TEST_F(SetAttrTest, AReportMovesNoTimeOfItsOwn) {
  const uint64_t f = CreateOpen(kRoot, "f");
  const int64_t made = clock.WallNow().ns;
  clock.Advance(1s);
  wire::SetAttrRequest change = Change(f);
  change.set_mode(0600);
  change.set_ctime_ns(made + 7);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, change).attr().ctime_ns(), made + 7);
  change.set_size(10);
  change.set_mtime_ns(made + 6);
  change.set_ctime_ns(made + 6);
  wire::Attr after = Ask<wire::EntryReply>(wire::MDS_SETATTR, change).attr();
  EXPECT_EQ(after.mtime_ns(), made + 6);
  EXPECT_EQ(after.ctime_ns(), made + 7);
  wire::WroteRequest wrote;
  wrote.set_inode(f);
  wrote.set_size_at_least(100);
  wrote.set_mtime_ns(made + 8);
  after = Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr();
  EXPECT_EQ(std::pair(after.mtime_ns(), after.ctime_ns()), std::pair(made + 8, made + 8));
  wire::AllocatedRequest kept;
  kept.set_inode(f);
  kept.set_end(4096);
  kept.set_mtime_ns(made + 9);
  kept.set_keeps_times(true);
  after = Ask<wire::EntryReply>(wire::MDS_ALLOCATED, kept).attr();
  EXPECT_EQ(std::pair(after.mtime_ns(), after.ctime_ns()), std::pair(made + 8, made + 8));
  kept.set_keeps_times(false);
  after = Ask<wire::EntryReply>(wire::MDS_ALLOCATED, kept).attr();
  EXPECT_EQ(std::pair(after.mtime_ns(), after.ctime_ns()), std::pair(made + 9, made + 9));
  change = Change(f);
  change.set_ctime_ns(clock.WallNow().ns + Duration(1h).count());
  after = Ask<wire::EntryReply>(wire::MDS_SETATTR, change).attr();
  EXPECT_EQ(after.ctime_ns(), clock.WallNow().ns) << "a clock that is not believed";
  change.set_ctime_ns(clock.WallNow().ns + Duration(2s).count());
  after = Ask<wire::EntryReply>(wire::MDS_SETATTR, change).attr();
  EXPECT_EQ(after.ctime_ns(), change.ctime_ns());
  EXPECT_GE(Stat(CreateOpen(kRoot, "later")).attr().ctime_ns(), change.ctime_ns());
}

// Goal: a write moves an mtime that was set, also one that lies ahead; a report that comes late
// takes nothing back.
TEST_F(SetAttrTest, AWriteMovesATimeThatLiesAhead) {
  const uint64_t f = CreateOpen(kRoot, "f");
  for (const Duration ahead : {Duration(1h), Duration(2s), Duration(-1h)}) {
    wire::SetAttrRequest set;
    set.set_inode(f);
    set.set_mtime_ns(clock.WallNow().ns + ahead.count());
    EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, set).attr().mtime_ns(), set.mtime_ns());
    clock.Advance(1s);
    wire::WroteRequest wrote;
    wrote.set_inode(f);
    wrote.set_size_at_least(10);
    wrote.set_mtime_ns(clock.WallNow().ns);
    clock.Advance(4s);
    wire::Attr after = Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr();
    EXPECT_EQ(after.mtime_ns(), wrote.mtime_ns());
    EXPECT_GE(after.ctime_ns(), after.mtime_ns());
    wrote.set_mtime_ns(wrote.mtime_ns() - Duration(1s).count());
    after = Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr();
    EXPECT_EQ(after.mtime_ns(), wrote.mtime_ns() + Duration(1s).count()) << "it went back";
  }
}

// Goal: what happens after a write has been reported is not older than that, by whatever clock the
// mount goes; one that is far ahead is not believed.
TEST_F(SetAttrTest, ChangesFollowTheClockOfAMountThatIsAhead) {
  const uint64_t f = CreateOpen(kRoot, "f");
  wire::WroteRequest wrote;
  wrote.set_inode(f);
  wrote.set_size_at_least(10);
  wrote.set_mtime_ns(clock.WallNow().ns + Duration(5s).count());
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().mtime_ns(), wrote.mtime_ns());
  EXPECT_GE(Stat(CreateOpen(kRoot, "later")).attr().mtime_ns(), wrote.mtime_ns());
  const int64_t latest = Stat(f).attr().mtime_ns();
  wrote.set_mtime_ns(clock.WallNow().ns + Duration(1h).count());
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().mtime_ns(), latest);
}

// Goal: a file never shows fewer blocks than its data takes, and none for what was never written.
TEST_F(SetAttrTest, HolesTakeNoBlocks) {
  const uint64_t f = CreateOpen(kRoot, "f");
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, Size(f, 1 << 20)).attr().blocks(), 0u);
  wire::WroteRequest wrote;
  wrote.set_inode(f);
  wrote.set_size_at_least(64 << 10);
  wrote.mutable_space()->set_wrote_bytes(8192);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().blocks(), 16u);
  wrote.set_size_at_least(2 << 20);  // a write behind the end, with a gap before it
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().blocks(), 32u);
  wrote.mutable_space()->set_wrote_bytes(0);
  wrote.mutable_space()->set_freed_bytes(4096);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().blocks(), 24u);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, Size(f, 5000)).attr().blocks(), 16u);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, Size(f, 1 << 20)).attr().blocks(), 16u);
  wrote.clear_space();  // from a mount that does not count
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().blocks(), 2u << 11);
}

// Goal: what is allocated counts at once, behind the end too, until the file is cut.
TEST_F(SetAttrTest, AllocatedSpaceTakesBlocks) {
  const uint64_t f = CreateOpen(kRoot, "f");
  wire::AllocatedRequest kept;
  kept.set_inode(f);
  kept.set_end(1 << 20);
  kept.set_keep_size(true);
  kept.set_grown_bytes(1 << 20);
  kept.set_beyond_bytes(1 << 20);
  auto attr = Ask<wire::EntryReply>(wire::MDS_ALLOCATED, kept).attr();
  EXPECT_EQ(attr.size(), 0u);
  EXPECT_EQ(attr.blocks(), 2048u);
  EXPECT_EQ(attr.allocated_end(), 1u << 20);
  wire::WroteRequest wrote;
  wrote.set_inode(f);
  wrote.set_size_at_least(64 << 10);
  wrote.mutable_space()->set_wrote_bytes(0);  // it took no more
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_WROTE, wrote).attr().blocks(), 2048u);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, Size(f, 128 << 10)).attr().blocks(), 2048u);
  osds.orders.clear();
  attr = Ask<wire::EntryReply>(wire::MDS_SETATTR, Size(f, 128 << 10)).attr();
  EXPECT_EQ(attr.blocks(), 256u);
  EXPECT_EQ(attr.allocated_end(), 128u << 10);
  EXPECT_FALSE(osds.orders.empty()) << "the OSDs keep it still";
  kept.set_keep_size(false);
  kept.set_grown_bytes((1 << 20) - (128 << 10));
  kept.set_beyond_bytes((1 << 20) - (128 << 10));
  attr = Ask<wire::EntryReply>(wire::MDS_ALLOCATED, kept).attr();
  EXPECT_EQ(attr.size(), 1u << 20);
  EXPECT_EQ(attr.blocks(), 2048u);
}

TEST_F(SetAttrTest, TruncateTellsTheOsdsAndAnswersWhenTheyAreDone) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 10 << 20);
  osds.orders.clear();
  osds.hold = true;
  const auto call = Send(wire::MDS_SETATTR, Size(f, 5 << 20));
  EXPECT_EQ(Finish(call).status.code(), ErrorCode::kTimedOut) << "the OSDs have not answered";
  ASSERT_EQ(osds.orders.size(), 2u);
  EXPECT_EQ(osds.orders[0].kind, ObjectOrder::Kind::kTruncate);
  EXPECT_EQ(osds.orders[0].index, 1u);
  EXPECT_EQ(osds.orders[0].size, 1u << 20);
  EXPECT_EQ(osds.orders[1].kind, ObjectOrder::Kind::kDeleteInode);
  EXPECT_EQ(osds.orders[1].index, 2u);
  // Whoever opens meanwhile could write what would be cut off: it waits too.
  wire::OpenRequest open;
  open.set_inode(f);
  const auto opening = Send(wire::MDS_OPEN, open);
  EXPECT_FALSE(opening->answer.has_value());
  osds.Release();
  EXPECT_TRUE(Finish(call).status.ok());
  EXPECT_TRUE(Finish(opening).status.ok());
  EXPECT_EQ(Stat(f).attr().size(), uint64_t{5} << 20);
}

TEST_F(SetAttrTest, ATruncateThatARestartInterruptsIsDoneBeforeAnybodyOpens) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 10 << 20);
  osds.hold = true;
  Finish(Send(wire::MDS_SETATTR, Size(f, 0)));
  osds.held.clear();
  osds.orders.clear();
  Restart();
  ASSERT_EQ(osds.orders.size(), 1u);
  EXPECT_EQ(osds.orders[0].index, 0u);
  wire::OpenRequest open;
  open.set_inode(f);
  const auto opening = Send(wire::MDS_OPEN, open);
  EXPECT_FALSE(opening->answer.has_value());
  osds.hold = false;
  osds.Release();
  EXPECT_TRUE(Finish(opening).status.ok());
  osds.orders.clear();
  Restart();
  EXPECT_TRUE(osds.orders.empty()) << "the intent is gone";
}

// The accident: the file was removed before the cut had ended. What lay in the pool of before
// stayed there for ever, as the removal looks where the layout says, and ends the intent.
TEST_F(SetAttrTest, ALayoutWaitsForTheEndOfATruncate) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 10 << 20);
  osds.hold = true;
  const auto cut = Send(wire::MDS_SETATTR, Size(f, 0));
  Finish(cut);
  const auto layout = Send(wire::MDS_SETXATTR, Xattr(f, "user.weir.layout.stripe_count", "2"));
  EXPECT_EQ(Finish(layout).status.code(), ErrorCode::kTimedOut);
  EXPECT_EQ(Get(f, "user.weir.layout.stripe_count"), "1");
  osds.Release();
  EXPECT_TRUE(Finish(cut).status.ok());
  EXPECT_TRUE(Finish(layout).status.ok());
  EXPECT_EQ(Get(f, "user.weir.layout.stripe_count"), "2");
}

// Of a sparse file only the OSDs know what a cut frees.
TEST_F(SetAttrTest, WhatACutFreesIsCountedNoMore) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Write(f, 4 << 20, 1 << 20);
  osds.frees = {0, 1 << 20};
  auto cut = Ask<wire::EntryReply>(wire::MDS_SETATTR, Size(f, 2 << 20)).attr();
  EXPECT_EQ(cut.blocks(), 0u);
  EXPECT_EQ(Stat(f).attr().blocks(), 0u);
  EXPECT_EQ(Stat(f).attr().version(), cut.version());

  Write(f, 8 << 20, 3 << 20);
  osds.frees = {1 << 20};
  osds.answer = Status(ErrorCode::kUnreachable);
  const auto call = Send(wire::MDS_SETATTR, Size(f, 7 << 20));
  Finish(call);
  EXPECT_EQ(Stat(f).attr().blocks(), 3u << 11) << "not known yet";
  osds.answer = Status::Ok();
  clock.Advance(1s);
  core->Tick();
  EXPECT_TRUE(Finish(call).status.ok());
  EXPECT_EQ(Stat(f).attr().blocks(), 2u << 11);
  Restart();
  EXPECT_EQ(Stat(f).attr().blocks(), 2u << 11);
}

// What is written meanwhile may be of before the cut or of after it.
TEST_F(SetAttrTest, NeverLessIsCountedThanAFileTakes) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Write(f, 4 << 20, 1 << 20);
  osds.hold = true;
  osds.frees = {0, 1 << 20};
  const auto call = Send(wire::MDS_SETATTR, Size(f, 2 << 20));
  Finish(call);
  Write(f, 2 << 20, 2 << 20);
  osds.Release();
  EXPECT_TRUE(Finish(call).status.ok());
  EXPECT_EQ(Stat(f).attr().blocks(), 4u << 10);
}

TEST_F(SetAttrTest, FailedOrdersAreSentAgain) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 1);
  osds.answer = Status(ErrorCode::kUnreachable);
  const auto call = Send(wire::MDS_SETATTR, Size(f, 0));
  Finish(call);
  EXPECT_FALSE(call->answer.has_value());
  osds.answer = Status::Ok();
  core->Tick();
  EXPECT_FALSE(call->answer.has_value()) << "too early";
  clock.Advance(1s);
  core->Tick();
  EXPECT_TRUE(Finish(call).status.ok());
}

TEST_F(SetAttrTest, NothingToCutOffMeansNoOsdIsAsked) {
  const uint64_t f = CreateOpen(kRoot, "f");
  osds.orders.clear();
  EXPECT_EQ(Code(wire::MDS_SETATTR, Size(f, 0)), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_SETATTR, Size(f, 1 << 20)), ErrorCode::kOk);
  EXPECT_TRUE(osds.orders.empty());
  wire::SetAttrRequest buffered = Size(f, 2 << 20);
  buffered.set_known_size(3 << 20);
  EXPECT_EQ(Code(wire::MDS_SETATTR, buffered), ErrorCode::kOk);
  EXPECT_EQ(osds.orders.size(), 2u) << "one object is cut, the rest goes";
}

TEST_F(SetAttrTest, RefusesSizesOfOtherThingsAndBeyondTheLimit) {
  EXPECT_EQ(Code(wire::MDS_SETATTR, Size(kRoot, 0)), ErrorCode::kIsDirectory);
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_SETATTR, Size(f, UINT64_MAX)), ErrorCode::kFileTooBig);
  EXPECT_EQ(Code(wire::MDS_SETATTR, Size(f, uint64_t{1} << 63)), ErrorCode::kFileTooBig);
}

}  // namespace
}  // namespace weir::mds
