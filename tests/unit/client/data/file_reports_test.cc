// Goal: the MDS hears of all that was written and set, in order, once; who waits for that is told
// when it has. Method: an MDS whose answers the test holds back, below a FileReports and a FileIo.
#include "client/data/file_reports.h"

#include <unistd.h>

#include "client/takeover/record_file.h"
#include "client/takeover/takeover_log.h"
#include "tests/unit/client/data/shared_file_fixture.h"

namespace weir::client {
namespace {

class FileReportsTest : public SharedFileFixture {
 protected:
  void Wrote(uint64_t end) {
    inode_->Wrote(end, 1);
    reports_.Wrote(kSharedFile);
  }
  Ended Report() {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    reports_.Report(inode_, inode_->BeginReport().value(), false,
                    [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }

  FileReports reports_{clock_, inodes_, leases_, reporter_, nullptr};
};

TEST_F(FileReportsTest, OneReportIsOnItsWayAndTheNextSpeaksForAllThatWait) {
  Wrote(100);
  const auto first = Report();
  Wrote(200);
  const auto second = Report(), third = Report();
  bool quiet = false;
  reports_.WhenReported(kSharedFile, [&] { quiet = true; });
  EXPECT_EQ(reporter_.sizes, std::vector<uint64_t>{100});
  reporter_.Answer();
  EXPECT_EQ(*first, ErrorCode::kOk);
  EXPECT_FALSE(second->has_value());
  EXPECT_FALSE(quiet);
  EXPECT_EQ(reporter_.sizes, (std::vector<uint64_t>{100, 200}));
  reporter_.Answer();
  EXPECT_EQ(*second, ErrorCode::kOk);
  EXPECT_EQ(*third, ErrorCode::kOk);
  EXPECT_TRUE(quiet);
  EXPECT_EQ(reporter_.sizes.size(), 2u);
  EXPECT_TRUE(reports_.All().empty());
}

TEST_F(FileReportsTest, WhatIsNotReportedKeepsItsFileAndAFailureIsNoReport) {
  Wrote(100);
  inodes_.Forget(kSharedFile, 1);
  EXPECT_NE(inodes_.Find(kSharedFile), nullptr);
  reporter_.refusal = ErrorCode::kUnreachable;
  const auto failed = Report();
  reporter_.Answer();
  EXPECT_EQ(*failed, ErrorCode::kUnreachable);
  EXPECT_EQ(reports_.All(), std::vector{inode_});
  reporter_.refusal.reset();
  Report();
  reporter_.Answer();
  EXPECT_EQ(inodes_.Find(kSharedFile), nullptr);
}

TEST_F(FileReportsTest, WhatIsOldIsTakenOnceInItsAge) {
  constexpr Duration kAge = std::chrono::seconds(4);
  Wrote(100);
  EXPECT_TRUE(reports_.TakeOld(kAge).empty());
  clock_.Advance(kAge);
  EXPECT_EQ(reports_.TakeOld(kAge), std::vector{inode_});
  EXPECT_TRUE(reports_.TakeOld(kAge).empty());
  clock_.Advance(kAge);
  EXPECT_EQ(reports_.TakeOld(kAge), std::vector{inode_}) << "its report may have failed";
}

TEST_F(FileReportsTest, WhatIsLostWithTheSessionEndsAllThatWaitsForIt) {
  Wrote(100);
  reports_.Closed(*inode_);
  EXPECT_TRUE(reports_.HasClosed(kSharedFile));
  bool stored = false;
  reports_.WhenStored(kSharedFile, [&] { stored = true; });
  const auto lost = reports_.LoseAll();
  EXPECT_FALSE(stored);
  for (const auto& waiting : lost) {
    for (const auto& then : waiting) then();
  }
  EXPECT_TRUE(stored);
  EXPECT_FALSE(reports_.HasClosed(kSharedFile));
  EXPECT_TRUE(reports_.All().empty());
  EXPECT_TRUE(inode_->has_error());
  EXPECT_FALSE(inode_->has_unreported());
}

TEST_F(FileReportsTest, WhatIsAllReportedIsNotAmongTheClosed) {
  reports_.Closed(*inode_);
  EXPECT_FALSE(reports_.HasClosed(kSharedFile));
  bool stored = false;
  reports_.WhenStored(kSharedFile, [&] { stored = true; });
  EXPECT_TRUE(stored);
}

class HeldAttributesOfFileTest : public SharedFileFixture {
 protected:
  bool SetMode(uint32_t mode) {
    HeldAttributes change;
    change.mode = mode;
    change.ctime_ns = clock_.WallNow().ns;
    return files_.HoldAttributes(inode_, change, 0, {});
  }
  bool GiveAway() {
    HeldAttributes change;
    change.uid = 7;
    change.ctime_ns = clock_.WallNow().ns;
    return files_.HoldAttributes(inode_, change, 0, {});
  }
};

TEST_F(HeldAttributesOfFileTest, AttributesAreHeldUnderALeaseAndToldBehindTheData) {
  EXPECT_FALSE(SetMode(0600)) << "others may look";
  Lease();
  Write(handle_, 0);
  ASSERT_TRUE(SetMode(0600));
  const auto synced = Fsync(handle_);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_TRUE(reporter_.sizes.empty());
  osds_.Answer(0);
  ASSERT_EQ(reporter_.modes, std::vector<uint32_t>{0600});
  EXPECT_EQ(reporter_.sizes, std::vector<uint64_t>{100});
  reporter_.Answer();
  EXPECT_EQ(*synced, ErrorCode::kOk);
  EXPECT_FALSE(inode_->has_unreported());
}

// A name that is changed does not wait for the disks of somebody else's data.
TEST_F(HeldAttributesOfFileTest, AttributesAreToldWithoutTheDataWhenSomebodyNeedsThem) {
  Lease();
  Write(handle_, 0);
  ASSERT_TRUE(SetMode(0600));
  bool told = false;
  files_.TellHeld([&] { told = true; });
  EXPECT_TRUE(osds_.flights.empty());
  ASSERT_EQ(reporter_.modes, std::vector<uint32_t>{0600});
  EXPECT_EQ(reporter_.sizes, std::vector<uint64_t>{0});
  ASSERT_TRUE(SetMode(0640)) << "while that is on its way";
  EXPECT_FALSE(told);
  reporter_.Answer();
  EXPECT_TRUE(told);
  files_.TellHeld(inode_, [] {});
  EXPECT_EQ(reporter_.modes.back(), 0640u);
  reporter_.Answer();
  EXPECT_FALSE(inode_->holds_attributes());
  EXPECT_TRUE(inode_->has_unreported()) << "the data";
  EXPECT_EQ(inode_->size(), 100u);
  told = false;
  files_.TellHeld([&] { told = true; });
  EXPECT_TRUE(told) << "nothing is left to tell";
  EXPECT_EQ(reporter_.modes.size(), 2u);
}

// Otherwise the kernel of another mount may know a name of it, and judge by the owner before.
TEST_F(HeldAttributesOfFileTest, AnotherOwnerIsHeldOnlyOfWhatNobodyElseHasSeen) {
  Lease();
  EXPECT_FALSE(GiveAway());
  leases_.Revoke(inode_);
  Lease(true);
  EXPECT_TRUE(GiveAway());
  Lease();
  EXPECT_TRUE(GiveAway()) << "opened once more";
  leases_.BeginRelease(inode_->id());
  EXPECT_FALSE(GiveAway());
  leases_.EndRelease(inode_->id());
  Lease();
  EXPECT_FALSE(GiveAway()) << "others may have looked in between";
}

// Whoever has it open hears from the successor of this process that they were lost; by name nobody.
TEST_F(HeldAttributesOfFileTest, WithASuccessorOnlyAttributesOfOpenFilesAreHeld) {
  const int state = *RecordFile::Create(1 << 16);
  const auto log = *TakeoverLog::Open(state, 7);
  FileIo::Options options;
  options.takeover = log.get();
  FileIo files{clock_, objects_, inodes_, classes_, leases_, reporter_, options};
  HeldAttributes change;
  change.mode = 0600;
  change.ctime_ns = 1;
  Lease();
  EXPECT_FALSE(files.HoldAttributes(inode_, change, 0, {}));
  inode_->AddWriter();
  EXPECT_TRUE(files.HoldAttributes(inode_, change, 0, {}));
  close(state);
}

TEST_F(HeldAttributesOfFileTest, AttributesAreToldAfterSomeSeconds) {
  Lease();
  ASSERT_TRUE(SetMode(0600));
  clock_.Advance(std::chrono::seconds(3));
  files_.Tick();
  EXPECT_TRUE(reporter_.modes.empty());
  clock_.Advance(std::chrono::seconds(1));
  files_.Tick();
  EXPECT_EQ(reporter_.modes, std::vector<uint32_t>{0600});
  reporter_.Answer();
  EXPECT_FALSE(inode_->has_unreported());
}

TEST_F(HeldAttributesOfFileTest, AttributesOfAnEvictedMountAreNotTold) {
  Lease();
  ASSERT_TRUE(SetMode(0600));
  classes_.Fence();
  files_.Evicted();
  EXPECT_EQ(Sync(), ErrorCode::kStale) << "told once";
  EXPECT_TRUE(reporter_.modes.empty());
  EXPECT_FALSE(inode_->holds_attributes());
}

// What goes by the kernel's pages is durable when it is answered, also the size.
class AloneFileTest : public SharedFileFixture {
 protected:
  void SetUp() override {
    SharedFileFixture::SetUp();
    direct_ = Open(O_RDWR | O_DIRECT);
  }
  Ended WriteAlone(uint64_t offset) { return WriteBy(alone_, direct_, offset); }

  FileLeases always_{clock_, true};
  FileIo alone_{clock_, objects_, inodes_, classes_, always_, reporter_, {}};
  HandlePtr direct_;
};

TEST_F(AloneFileTest, AFileThatGrowsIsAnsweredWhenTheMdsKnows) {
  const auto first = WriteAlone(0), second = WriteAlone(100), third = WriteAlone(200);
  ASSERT_EQ(osds_.flights.size(), 3u);
  osds_.Answer(0);
  EXPECT_EQ(reporter_.sizes, (std::vector<uint64_t>{100}));
  osds_.AnswerAll();
  EXPECT_FALSE(first->has_value());
  reporter_.Answer();
  EXPECT_EQ(*first, ErrorCode::kOk);
  EXPECT_FALSE(second->has_value());
  EXPECT_EQ(reporter_.sizes, (std::vector<uint64_t>{100, 300})) << "one for both";
  reporter_.Answer();
  EXPECT_EQ(*second, ErrorCode::kOk);
  EXPECT_EQ(*third, ErrorCode::kOk);
  const auto over = WriteAlone(50);
  osds_.AnswerAll();
  EXPECT_EQ(*over, ErrorCode::kOk) << "it does not grow";
  EXPECT_EQ(reporter_.sizes.size(), 2u);
}

}  // namespace
}  // namespace weir::client
