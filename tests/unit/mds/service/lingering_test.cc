// Goal: what somebody was told of he finds by its number though its last name has gone; and it goes
// when nobody can ask any more. Method: two sessions, requests in the order of the race.
#include "mds/ns/lingering.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class LingeringTest : public MdsFixture {
 protected:
  void SetUp() override {
    MdsFixture::SetUp();
    clock.Advance(20s);  // no time of grace
    core->Tick();
    while (core->names().CommitPrepared()) {
    }
  }
  void Settle() {
    core->Tick();
    while (core->names().CommitPrepared()) {
    }
  }
  ErrorCode Look(uint64_t by, const std::string& name) {
    session = by;
    return Code(wire::MDS_LOOKUP, Name(kRoot, name));
  }
  ErrorCode Get(uint64_t by, uint64_t inode) {
    session = by;
    return Code(wire::MDS_GETATTR, At(inode));
  }
  ErrorCode OpenBy(uint64_t by, uint64_t inode) {
    session = by;
    wire::OpenRequest request;
    request.set_inode(inode);
    return Code(wire::MDS_OPEN, request);
  }
  uint64_t RemoveKeeping(uint64_t by, uint32_t method, const std::string& name) {
    session = by;
    wire::NameRequest request = Name(kRoot, name);
    request.set_keep(true);
    return Ask<wire::TouchedReply>(method, request).kept();
  }
  void LetGo(uint64_t by, uint64_t inode) {
    session = by;
    wire::ReleaseRequest request;
    request.add_kept(inode);
    EXPECT_EQ(Code(wire::MDS_RELEASE, request), ErrorCode::kOk);
  }
  static constexpr uint64_t kMine = 11;
  static constexpr uint64_t kOther = 12;
};

TEST_F(LingeringTest, StaysForWhoTookItsLastNameUntilHeLetsGo) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  const uint64_t link = Touch(kRoot, "g");
  const uint64_t directory = Mkdir(kRoot, "d");
  clock.Advance(60s);  // longer than anybody is remembered to have been told, and keeps no longer
  EXPECT_EQ(RemoveKeeping(kMine, wire::MDS_UNLINK, "f"), file);
  EXPECT_EQ(RemoveKeeping(kMine, wire::MDS_RMDIR, "d"), directory);
  wire::RenameRequest replace = Move(kRoot, "h", kRoot, "g");
  Touch(kRoot, "h");
  replace.set_keep(true);
  EXPECT_EQ(Ask<wire::TouchedReply>(wire::MDS_RENAME, replace).kept(), link);
  for (const uint64_t inode : {file, directory, link}) {
    EXPECT_EQ(Stat(inode).attr().nlink(), 0U);
    EXPECT_EQ(OpenBy(kMine, inode), ErrorCode::kOk);
    EXPECT_EQ(Release(inode), ErrorCode::kOk);
    EXPECT_EQ(Get(kMine, inode), ErrorCode::kOk) << "its close is not its end";
    LetGo(kOther, inode);
    EXPECT_EQ(Get(kMine, inode), ErrorCode::kOk) << "that was not his";
    LetGo(kMine, inode);
    EXPECT_EQ(Get(kMine, inode), ErrorCode::kStale);
  }
}

// Who waits for room learns of files that are about to go, and not of those that are being used.
TEST_F(LingeringTest, CountsAsARemovalUnlessItIsOpen) {
  const auto pending = [this] {
    return Ask<wire::StatusReply>(wire::MDS_STATUS, wire::Empty()).pending_purges();
  };
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  const uint64_t kept = Touch(kRoot, "g");
  EXPECT_EQ(Look(kOther, "f"), ErrorCode::kOk);
  EXPECT_EQ(pending(), 0U);
  EXPECT_EQ(RemoveKeeping(kMine, wire::MDS_UNLINK, "f"), file);
  EXPECT_EQ(RemoveKeeping(kMine, wire::MDS_UNLINK, "g"), kept);
  EXPECT_EQ(pending(), 2U);
  EXPECT_EQ(OpenBy(kOther, file), ErrorCode::kOk);
  EXPECT_EQ(pending(), 1U);
  EXPECT_EQ(Release(file), ErrorCode::kOk);
  EXPECT_EQ(pending(), 2U);
  LetGo(kMine, file);
  EXPECT_EQ(pending(), 2U) << "it stays for the other one";
}

TEST_F(LingeringTest, IsGoneAtOnceWhenNobodyKnowsIt) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  EXPECT_EQ(Get(kMine, file), ErrorCode::kStale);
}

TEST_F(LingeringTest, StaysForOthersWhoWereToldOfIt) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Look(kOther, "f"), ErrorCode::kOk);
  EXPECT_EQ(Look(kMine, "f"), ErrorCode::kOk);
  session = kMine;
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  clock.Advance(Lingering::kGrace - 1s);
  Settle();
  EXPECT_EQ(OpenBy(kOther, file), ErrorCode::kOk);
  clock.Advance(2s);
  Settle();
  EXPECT_EQ(Get(kOther, file), ErrorCode::kOk) << "it is open";
  EXPECT_EQ(Release(file), ErrorCode::kOk);
  EXPECT_EQ(Get(kOther, file), ErrorCode::kStale);
}

TEST_F(LingeringTest, GoesWhenTheTimeIsOver) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Look(kOther, "f"), ErrorCode::kOk);
  EXPECT_EQ(RemoveKeeping(kMine, wire::MDS_UNLINK, "f"), file);
  LetGo(kMine, file);
  EXPECT_EQ(Get(kOther, file), ErrorCode::kOk);
  clock.Advance(Lingering::kGrace);
  Settle();
  EXPECT_EQ(Get(kOther, file), ErrorCode::kStale);
}

TEST_F(LingeringTest, WhoWasToldLongAgoIsNotWaitedFor) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Look(kOther, "f"), ErrorCode::kOk);
  clock.Advance(Lingering::kGrace);
  session = kMine;
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  EXPECT_EQ(Get(kMine, file), ErrorCode::kStale);
}

TEST_F(LingeringTest, ARemovalThatFailsKeepsNothing) {
  session = kMine;
  const uint64_t directory = Mkdir(kRoot, "d");
  const uint64_t inside = Touch(directory, "x");
  wire::NameRequest remove = Name(kRoot, "d");
  remove.set_keep(true);
  EXPECT_EQ(Code(wire::MDS_RMDIR, remove), ErrorCode::kNotEmpty);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(directory, "x")), ErrorCode::kOk);
  EXPECT_EQ(Get(kMine, inside), ErrorCode::kStale);
  EXPECT_EQ(Code(wire::MDS_RMDIR, Name(kRoot, "d")), ErrorCode::kOk);
  EXPECT_EQ(Get(kMine, directory), ErrorCode::kStale);
}

TEST_F(LingeringTest, EndsWithItsSessionAndWhatASuccessorDoesNotName) {
  session = kMine;
  const uint64_t first = Touch(kRoot, "f");
  const uint64_t second = Touch(kRoot, "g");
  RemoveKeeping(kMine, wire::MDS_UNLINK, "f");
  RemoveKeeping(kMine, wire::MDS_UNLINK, "g");
  wire::OpenSessionRequest reopen;
  reopen.add_kept(second);
  reopen.set_resumes(true);
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, reopen);
  Settle();
  EXPECT_EQ(Get(kMine, first), ErrorCode::kStale);
  EXPECT_EQ(Get(kMine, second), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  Settle();
  EXPECT_EQ(Get(kOther, second), ErrorCode::kStale);
}

// It had listed what it keeps before it had the answer to the removal.
TEST_F(LingeringTest, WhatIsRemovedWhileTheSessionBeginsAnewStays) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  const wire::OpenSessionRequest reopen;
  EXPECT_EQ(RemoveKeeping(kMine, wire::MDS_UNLINK, "f"), file);
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, reopen);
  Settle();
  EXPECT_EQ(Get(kMine, file), ErrorCode::kOk);
  LetGo(kMine, file);
  EXPECT_EQ(Get(kMine, file), ErrorCode::kStale);
}

TEST_F(LingeringTest, ARemovalThatIsAnsweredAgainAfterARestartKeepsAgain) {
  constexpr uint64_t kId = 1000;
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  wire::NameRequest remove = Name(kRoot, "f");
  remove.set_keep(true);
  const auto kept = [&] {
    wire::TouchedReply reply;
    EXPECT_TRUE(reply.ParseFromString(Try(wire::MDS_UNLINK, remove, kId).body));
    return reply.kept();
  };
  EXPECT_EQ(kept(), file);
  Restart();
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, wire::OpenSessionRequest());
  EXPECT_EQ(kept(), file);
  clock.Advance(20s);
  Settle();
  EXPECT_EQ(Get(kMine, file), ErrorCode::kOk);
  LetGo(kMine, file);
  EXPECT_EQ(Get(kMine, file), ErrorCode::kStale);
  EXPECT_EQ(kept(), file);  // late
  const auto status = Ask<wire::StatusReply>(wire::MDS_STATUS, wire::Empty());
  EXPECT_EQ(status.pending_purges(), 0U) << "it has gone and is kept by nobody";
}

TEST_F(LingeringTest, IsReclaimedAfterARestart) {
  session = kMine;
  const uint64_t file = Touch(kRoot, "f");
  RemoveKeeping(kMine, wire::MDS_UNLINK, "f");
  Restart();
  wire::OpenSessionRequest reopen;
  reopen.add_kept(file);
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, reopen);
  clock.Advance(20s);
  Settle();
  EXPECT_EQ(Get(kMine, file), ErrorCode::kOk);
  LetGo(kMine, file);
  EXPECT_EQ(Get(kMine, file), ErrorCode::kStale);
}

TEST(LingeringTableTest, RemembersTheLastOfTheOthers) {
  testing::ManualClock clock;
  clock.Advance(1s);
  Lingering lingering(clock);
  lingering.Told(1, 50);
  clock.Advance(1s);
  lingering.Told(2, 50);
  lingering.Told(2, 50);
  EXPECT_TRUE(lingering.OthersKnow(2, 50, 9)) << "1 was told a second ago";
  EXPECT_TRUE(lingering.OthersKnow(1, 50, 9));
  clock.Advance(Lingering::kGrace - 1s);
  EXPECT_FALSE(lingering.OthersKnow(2, 50, 9));
  EXPECT_TRUE(lingering.OthersKnow(1, 50, 9));
}

// A mount answers looks by itself under a lease; when that has gone for a change it may have done
// so just before.
TEST(LingeringTableTest, ALeaseThatWasTakenBackCountsAsTold) {
  testing::ManualClock clock;
  clock.Advance(1s);
  Lingering lingering(clock);
  EXPECT_FALSE(lingering.OthersKnow(1, 50, 9));
  lingering.LeaseTaken(9);
  EXPECT_TRUE(lingering.OthersKnow(1, 50, 9));
  EXPECT_FALSE(lingering.OthersKnow(1, 9, 8)) << "the directory itself";
  clock.Advance(Lingering::kGrace);
  EXPECT_FALSE(lingering.OthersKnow(1, 50, 9));
}

}  // namespace
}  // namespace weir::mds
