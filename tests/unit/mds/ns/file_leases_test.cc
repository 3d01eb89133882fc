// FileLeases: what a session may remember of files and directories that it only looks at.
#include "mds/ns/file_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/testing/manual_clock.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kAlice = 1;
constexpr uint64_t kBob = 2;
constexpr uint64_t kFile = 10;

class LookLeasesTest : public ::testing::Test {
 protected:
  LookLeasesTest() {
    leases.Begin(kAlice, 100);
    leases.Begin(kBob, 200);
  }
  bool Look(uint64_t session, uint64_t inode = kFile) {
    return leases.Offer(session, inode, opens).has_value();
  }
  bool MayChange(uint64_t session, std::vector<FileLeases::Told>* told, uint64_t inode = kFile) {
    return !leases.Ask(session, {{}, {&inode, 1}}, told).in_the_way;
  }
  bool MayChangeDirectory(uint64_t session, std::vector<FileLeases::Told>* told) {
    return !leases.Ask(session, {{}, {}, {&kFile, 1}}, told).in_the_way;
  }
  bool MayClaim(uint64_t session, std::vector<FileLeases::Told>* told) {
    return !leases.Ask(session, {{}, {}, {}, {&kFile, 1}}, told).in_the_way;
  }
  std::vector<uint64_t> Wanted(uint64_t session) { return leases.RecallsOf(session, 0).inodes; }
  void Yield(uint64_t session, uint64_t inode = kFile) {
    const uint64_t seq = leases.RecallsOf(session, 0).seq;
    EXPECT_TRUE(leases.Yield(session, {session * 100, seq}, {&inode, 1}));
  }

  ::weir::testing::ManualClock clock;
  FileLeases leases{clock, {.looks_most = 0, .looks_least = 4}};
  OpenFiles opens;
  std::vector<FileLeases::Told> told;
};

TEST_F(LookLeasesTest, WhoHasLookedForgetsBeforeAnotherChanges) {
  ASSERT_TRUE(Look(kAlice));
  EXPECT_FALSE(MayChange(kBob, &told));
  EXPECT_THAT(Wanted(kAlice), ElementsAre(kFile));
  EXPECT_FALSE(Look(kAlice)) << "it would go with the recall";
  Yield(kAlice);
  EXPECT_TRUE(MayChange(kBob, &told));
  EXPECT_FALSE(Look(kAlice)) << "it rests";
  told.clear();
  EXPECT_TRUE(MayChange(kBob, &told)) << "nobody is told of a file that he knows nothing of";
  clock.Advance(1s);
  EXPECT_TRUE(Look(kAlice));
  told.clear();
  EXPECT_TRUE(MayChange(kAlice, &told)) << "its own";
}

TEST_F(LookLeasesTest, ASilentLookerIsWaitedForForATerm) {
  ASSERT_TRUE(Look(kAlice));
  EXPECT_FALSE(MayChange(kBob, &told));
  clock.Advance(1999ms);
  EXPECT_FALSE(MayChange(kBob, &told));
  clock.Advance(1ms);
  EXPECT_TRUE(MayChange(kBob, &told));
}

TEST_F(LookLeasesTest, NoLookAtWhatOthersWrite) {
  opens.Open(kBob, kFile, true);
  EXPECT_FALSE(Look(kAlice));
  opens.Close(kBob, kFile);
  EXPECT_TRUE(Look(kAlice));
  // He opens it for writing: nobody else looks at it from then on.
  EXPECT_FALSE(MayClaim(kBob, &told));
  Yield(kAlice);
  EXPECT_TRUE(MayClaim(kBob, &told));
  opens.Open(kBob, kFile, true);
  const auto grant = leases.Offer(kBob, kFile, opens);
  ASSERT_TRUE(grant.has_value());
  EXPECT_TRUE(grant->write) << "a claim lets nothing rest";
}

TEST_F(LookLeasesTest, AClaimTakesNothingFromWhoHasItOpen) {
  opens.Open(kAlice, kFile, false);
  ASSERT_TRUE(Look(kAlice));
  EXPECT_TRUE(MayClaim(kBob, &told));
}

TEST_F(LookLeasesTest, WhatWasReadHoldsBeyondTheClose) {
  opens.Open(kAlice, kFile, true);
  ASSERT_TRUE(leases.Offer(kAlice, kFile, opens)->write);
  opens.Close(kAlice, kFile);
  leases.Closed(kAlice, kFile);
  std::vector<FileLeases::Told> looked;
  EXPECT_FALSE(leases.Ask(kBob, {{&kFile, 1}, {}}, &looked).in_the_way) << "others may look";
  EXPECT_FALSE(MayChange(kBob, &told));
  Yield(kAlice);
  EXPECT_TRUE(MayChange(kBob, &told));
}

TEST_F(LookLeasesTest, ADirectoryRestsUntilOthersLeaveItAlone) {
  ASSERT_TRUE(Look(kAlice));
  EXPECT_FALSE(MayChangeDirectory(kBob, &told));
  Yield(kAlice);
  EXPECT_TRUE(MayChangeDirectory(kBob, &told));
  for (int i = 0; i < 5; ++i) {
    clock.Advance(99ms);
    EXPECT_FALSE(Look(kAlice));
    told.clear();
    EXPECT_TRUE(MayChangeDirectory(kBob, &told));
  }
  clock.Advance(100ms);
  EXPECT_TRUE(Look(kAlice));
}

// Goal: a change now and then costs others a moment of their caches, not seconds.
TEST_F(LookLeasesTest, ADirectoryRestsLongerWhenItIsChangedAgainAndAgain) {
  for (const auto rest : {100ms, 200ms, 400ms}) {
    ASSERT_TRUE(Look(kAlice));
    told.clear();
    EXPECT_FALSE(MayChangeDirectory(kBob, &told));
    Yield(kAlice);
    EXPECT_TRUE(MayChangeDirectory(kBob, &told));
    clock.Advance(rest - 1ms);
    EXPECT_FALSE(Look(kAlice)) << rest.count();
    clock.Advance(1ms);
  }
}

TEST_F(LookLeasesTest, TheOldestLooksGo) {
  for (uint64_t inode = 1; inode <= 4; ++inode) EXPECT_TRUE(Look(kAlice, inode));
  EXPECT_TRUE(Look(kAlice, 1)) << "it has that";
  EXPECT_TRUE(Look(kAlice, 5));
  EXPECT_THAT(Wanted(kAlice), ElementsAre(1));
  Yield(kAlice, 1);
  EXPECT_TRUE(MayChange(kBob, &told, 1));
  EXPECT_FALSE(MayChange(kBob, &told, 5));
}

TEST_F(LookLeasesTest, TheMoreSessionsTheFewerLooksOfEach) {
  FileLeases shared(clock, {.looks_most = 8, .looks_least = 3});
  const auto looks = [&](uint64_t session, uint64_t inodes) {
    for (uint64_t inode = 1; inode <= inodes; ++inode) (void)shared.Offer(session, inode, opens);
    return shared.RecallsOf(session, 0).inodes;
  };
  shared.Begin(kAlice, 100);
  EXPECT_THAT(looks(kAlice, 8), IsEmpty());
  shared.Begin(kBob, 100);
  EXPECT_THAT(looks(kBob, 4), IsEmpty());
  EXPECT_THAT(looks(kAlice, 9), ElementsAre(1, 2, 3, 4, 5)) << "her half is four";
  constexpr uint64_t kOther = 77;
  shared.Begin(kOther, 100);
  EXPECT_THAT(looks(kOther, 3), IsEmpty()) << "no less than that, however many there are";
  EXPECT_THAT(looks(kOther, 4), ElementsAre(1));
}

// Goal: who makes a million files and closes them does not have the MDS remember them all, and
// hears of what goes in rounds, not after each file.
TEST_F(LookLeasesTest, WhatIsMadeAndClosedIsRememberedUpToTheSameNumber) {
  FileLeases few(clock, {.looks_most = 0, .looks_least = 128});
  few.Begin(kAlice, 100);
  size_t rounds = 0;
  uint64_t heard = 0;
  size_t given_back = 0;
  for (uint64_t inode = 1; inode <= 1000; ++inode) {
    opens.Open(kAlice, inode, true);
    ASSERT_TRUE(few.Offer(kAlice, inode, opens)->write);
    opens.Close(kAlice, inode);
    few.Closed(kAlice, inode);
    if (!few.HasRecalls(kAlice, heard)) continue;
    ++rounds;
    const FileLeases::Recall recall = few.RecallsOf(kAlice, heard);
    heard = recall.seq;
    given_back += recall.inodes.size();
    EXPECT_TRUE(few.Yield(kAlice, {100, heard}, recall.inodes));
  }
  EXPECT_GE(given_back, 1000u - 128);
  EXPECT_LE(rounds, given_back / 2);
  EXPECT_TRUE(few.RecallsOf(kAlice, 0).inodes.empty());
}

// One that is opened again and again takes nobody else's place.
TEST_F(LookLeasesTest, AFileThatIsOpenedOftenIsOneOfThem) {
  for (uint64_t inode = 1; inode <= 3; ++inode) EXPECT_TRUE(Look(kAlice, inode));
  for (int i = 0; i < 10; ++i) {
    opens.Open(kAlice, 3, true);
    EXPECT_TRUE(Look(kAlice, 3));
    opens.Close(kAlice, 3);
    leases.Closed(kAlice, 3);
  }
  EXPECT_THAT(Wanted(kAlice), IsEmpty());
}

TEST_F(LookLeasesTest, WhoMovesANameIsToldOnceOfWhatHappensThere) {
  constexpr uint64_t kFrom = 11;
  leases.Moves(kAlice, kFrom, kFile);
  EXPECT_TRUE(MayChangeDirectory(kBob, &told)) << "its kernel knew nothing of the name";
  ASSERT_TRUE(Look(kAlice, kFrom));
  leases.Moves(kAlice, kFrom, kFile);
  EXPECT_FALSE(MayChangeDirectory(kBob, &told));
  EXPECT_THAT(Wanted(kAlice), ElementsAre(kFile));
  Yield(kAlice);
  told.clear();
  EXPECT_TRUE(MayChangeDirectory(kBob, &told));
}

TEST_F(LookLeasesTest, NothingIsLeftOfWhatIsGone) {
  ASSERT_TRUE(Look(kAlice));
  EXPECT_FALSE(MayChange(kBob, &told));
  leases.Gone(kFile);
  EXPECT_THAT(Wanted(kAlice), IsEmpty());
  told.clear();
  EXPECT_TRUE(MayChange(kBob, &told));
}

// Goal: a mount that is silent after a restart of the MDS loses nothing as long as nobody waits.
TEST_F(LookLeasesTest, ARestoredWriteLeaseIsOverdueOnlyWhenSomebodyWaitsForIt) {
  leases.Restore(kAlice, kFile);
  EXPECT_THAT(Wanted(kAlice), ElementsAre(kFile));
  clock.Advance(1h);
  EXPECT_THAT(leases.Overdue(), IsEmpty());
  const FileLeases::Wish look = {.shown = {&kFile, 1}};
  EXPECT_TRUE(leases.Ask(kBob, look, &told).in_the_way);
  clock.Advance(leases.patience());
  EXPECT_TRUE(leases.Ask(kBob, look, &told).in_the_way);
  EXPECT_THAT(leases.Overdue(), IsEmpty());
  clock.Advance(1ns);
  EXPECT_THAT(leases.Overdue(), ElementsAre(kAlice));
  Yield(kAlice);
  EXPECT_FALSE(leases.Ask(kBob, look, &told).in_the_way);
  EXPECT_THAT(leases.Overdue(), IsEmpty());
  leases.Restore(kAlice, kFile);
  EXPECT_FALSE(MayChange(kBob, &told)) << "a change waits for it as well";
  clock.Advance(leases.patience() + 1ns);
  EXPECT_THAT(leases.Overdue(), ElementsAre(kAlice));
}

// The accident: the first who waited had gone; the next one to come, for a moment, found a mount
// that was overdue, and it was evicted.
TEST_F(LookLeasesTest, NobodyIsOverdueForWhoHasGone) {
  leases.Restore(kAlice, kFile);
  const FileLeases::Wish look = {.shown = {&kFile, 1}};
  EXPECT_TRUE(leases.Ask(kBob, look, &told).in_the_way);
  const auto wait = [&](Duration time) {
    clock.Advance(time);
    leases.BeginRound();
  };
  wait(3s);
  EXPECT_TRUE(leases.Ask(kBob, look, &told).in_the_way);
  wait(3s);
  EXPECT_THAT(leases.Overdue(), IsEmpty()) << "nobody has asked again";
  EXPECT_TRUE(leases.Ask(kBob, look, &told).in_the_way);
  EXPECT_THAT(leases.Overdue(), ElementsAre(kAlice)) << "he asks in every round";
  wait(1s);
  wait(1s);
  EXPECT_TRUE(leases.Ask(kBob, look, &told).in_the_way);
  EXPECT_THAT(leases.Overdue(), IsEmpty()) << "he has just come";
  clock.Advance(leases.patience() + 1ns);
  EXPECT_THAT(leases.Overdue(), ElementsAre(kAlice));
}

// Goal: two that had the same file open may both come back with it: neither may buffer then.
TEST_F(LookLeasesTest, WhatTwoHaveRestoredNeitherMayBuffer) {
  for (const uint64_t session : {kAlice, kBob}) {
    opens.Open(session, kFile, true);
    leases.Restore(session, kFile);
  }
  EXPECT_FALSE(MayChange(kAlice, &told));
  Yield(kBob);
  EXPECT_TRUE(MayChange(kAlice, &told));
  EXPECT_FALSE(leases.Offer(kAlice, kFile, opens).has_value()) << "it is asked back itself";
  Yield(kAlice);
  clock.Advance(1s);
  const auto grant = leases.Offer(kAlice, kFile, opens);
  ASSERT_TRUE(grant.has_value());
  EXPECT_FALSE(grant->write);
}

// It has looked again while the change still waited for somebody else.
TEST_F(LookLeasesTest, WhoLooksAgainIsAskedAgain) {
  ASSERT_TRUE(Look(kAlice));
  EXPECT_FALSE(MayClaim(kBob, &told));
  Yield(kAlice);
  ASSERT_TRUE(Look(kAlice));
  EXPECT_FALSE(MayClaim(kBob, &told));
  EXPECT_THAT(Wanted(kAlice), ElementsAre(kFile));
  Yield(kAlice);
  EXPECT_TRUE(MayClaim(kBob, &told));
}

}  // namespace
}  // namespace weir::mds
