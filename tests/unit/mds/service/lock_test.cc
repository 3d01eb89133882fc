// Locks by requests: waiting, sessions that end, restarts.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class LockTest : public MdsFixture {
 protected:
  wire::FileLock Held(wire::FileLock::Type type, uint64_t first = 0, uint64_t last = 9) {
    wire::FileLock lock;
    lock.set_inode(5);
    lock.set_type(type);
    lock.set_first(first);
    lock.set_last(last);
    lock.set_owner(77);
    lock.set_pid(1234);
    return lock;
  }
  std::shared_ptr<TestCall> SendLock(wire::FileLock::Type type, bool wait = false) {
    wire::LockRequest request;
    *request.mutable_lock() = Held(type);
    request.set_wait(wait);
    request.set_ticket(++tickets_);
    return Send(wire::MDS_LOCK, request);
  }
  wire::LockReply::Verdict Heard(const std::shared_ptr<TestCall>& call) {
    const Answer answer = Finish(call);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    wire::LockReply reply;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply.verdict();
  }
  std::shared_ptr<TestCall> SendWait() {
    wire::LockTicket ticket;
    ticket.set_ticket(tickets_);
    return Send(wire::MDS_LOCK_WAIT, ticket);
  }
  wire::OpenSessionReply OpenSession(bool reclaims = false, bool resumes = false) {
    wire::OpenSessionRequest request;
    request.set_resumes(resumes);
    if (reclaims) *request.add_locks() = Held(wire::FileLock::WRITE);
    return Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  }
  void CommitAll() {
    while (core->names().CommitPrepared()) {
    }
  }
  void Pass(Duration time) {
    clock.Advance(time);
    core->Tick();
    core->names().CommitPrepared();
  }
  uint64_t tickets_ = 0;
};

TEST_F(LockTest, AWaiterIsAnsweredWhenTheHolderUnlocks) {
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::READ)), wire::LockReply::BUSY);
  wire::LockRequest test;
  *test.mutable_lock() = Held(wire::FileLock::READ);
  const auto shown = Ask<wire::LockReply>(wire::MDS_LOCK_TEST, test);
  EXPECT_EQ(shown.conflict().type(), wire::FileLock::WRITE);
  EXPECT_EQ(shown.conflict().pid(), 0u) << "of another machine";
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE, true)), wire::LockReply::WAITING);
  const auto waiting = SendWait();
  EXPECT_FALSE(waiting->answer.has_value());
  session = 7;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::NONE)), wire::LockReply::GRANTED);
  EXPECT_EQ(Heard(waiting), wire::LockReply::GRANTED);
}

TEST_F(LockTest, TheFirstLockOfASessionWaitsForTheStore) {
  const auto first = SendLock(wire::FileLock::WRITE);
  EXPECT_FALSE(first->answer.has_value());
  EXPECT_EQ(Heard(first), wire::LockReply::GRANTED);
  EXPECT_TRUE(SendLock(wire::FileLock::READ)->answer.has_value());
}

TEST_F(LockTest, ASilentSessionLosesItsLocks) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE, true)), wire::LockReply::WAITING);
  const auto waiting = SendWait();
  clock.Advance(25s);
  Send(wire::MDS_WATCH, wire::WatchRequest());  // this one lives
  Pass(10s);
  EXPECT_EQ(Heard(waiting), wire::LockReply::GRANTED);
  session = 7;
  EXPECT_EQ(OpenSession(true).lost_locks_size(), 1) << "somebody else had it meanwhile";
}

TEST_F(LockTest, AProcessThatGoesOnWithASessionKeepsItsLocks) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  EXPECT_EQ(OpenSession(true, true).lost_locks_size(), 0);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::READ)), wire::LockReply::BUSY);
}

// The accident: what it told was older than a lock that it had been granted in the midst of it, and
// made that a shared one.
TEST_F(LockTest, WhatItRegainsIsWhatItHasNot) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  wire::OpenSessionRequest request;
  request.set_resumes(true);
  *request.add_locks() = Held(wire::FileLock::READ, 0, 19);
  EXPECT_EQ(Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request).lost_size(), 0);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::READ)), wire::LockReply::BUSY);
  wire::LockRequest behind;
  *behind.mutable_lock() = Held(wire::FileLock::WRITE, 10, 19);
  EXPECT_EQ(Heard(Send(wire::MDS_LOCK, behind)), wire::LockReply::BUSY);
}

TEST_F(LockTest, AProcessThatGoesOnTooLateHasLostThem) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  Pass(40s);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  session = 7;
  EXPECT_EQ(OpenSession(true, true).lost_locks_size(), 1);
}

TEST_F(LockTest, AfterARestartNobodyOvertakesWhoReclaims) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  Restart();
  session = 8;
  const auto early = SendLock(wire::FileLock::WRITE);
  EXPECT_FALSE(early->answer.has_value()) << "the holder may still come back";
  session = 7;
  EXPECT_EQ(OpenSession(true).lost_locks_size(), 0);
  EXPECT_EQ(Heard(early), wire::LockReply::BUSY);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::READ)), wire::LockReply::BUSY);
}

TEST_F(LockTest, AHolderThatNeverComesBackIsWaitedForUntilGraceEnds) {
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  Restart();
  session = 8;
  const auto early = SendLock(wire::FileLock::WRITE);
  Pass(10s);
  EXPECT_FALSE(early->answer.has_value());
  Pass(6s);
  EXPECT_EQ(Heard(early), wire::LockReply::GRANTED);
  Restart();
  session = 9;
  const auto next = SendLock(wire::FileLock::WRITE);
  session = 8;
  OpenSession(true);
  EXPECT_EQ(Heard(next), wire::LockReply::BUSY) << "only the second holder was awaited";
}

TEST_F(LockTest, AClosedSessionIsNotAwaitedAfterARestart) {
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  while (core->names().CommitPrepared()) {
  }
  Restart();
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
}

// The accident: the answer to the first of them got lost. The mount was told that its locks are
// gone, forgot them, and nobody gave back what the MDS went on holding for it.
TEST_F(LockTest, WhoOpensItsSessionTwiceKeepsWhatItHasRegained) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  Restart();
  EXPECT_EQ(OpenSession(true).lost_locks_size(), 0);
  EXPECT_EQ(OpenSession(true).lost_locks_size(), 0);
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::READ)), wire::LockReply::BUSY);
}

// The accident: likewise, of a lock that it was granted before it knew that it had lost others.
TEST_F(LockTest, WhoHasLostSomeHearsWhichAndKeepsTheOthers) {
  OpenSession();
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  Pass(40s);
  wire::LockRequest neighbour;
  *neighbour.mutable_lock() = Held(wire::FileLock::WRITE, 10, 19);
  EXPECT_EQ(Heard(Send(wire::MDS_LOCK, neighbour)), wire::LockReply::GRANTED);
  wire::OpenSessionRequest request;
  *request.add_locks() = Held(wire::FileLock::WRITE, 0, 19);  // as it takes them for one
  const auto opened = Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  EXPECT_EQ(opened.lost_locks_size(), 1);
  ASSERT_EQ(opened.lost_size(), 1);
  EXPECT_EQ(opened.lost(0).SerializeAsString(),
            Held(wire::FileLock::WRITE, 0, 9).SerializeAsString());
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  EXPECT_EQ(Heard(Send(wire::MDS_LOCK, neighbour)), wire::LockReply::BUSY);
}

// The accident: what a mount had asked for as it ended was granted behind its end, and held until
// the next restart, as nobody was left to give it back.
TEST_F(LockTest, WhoHasEndedGetsNoLock) {
  const auto first = SendLock(wire::FileLock::WRITE);  // waits for the store
  const auto close = Send(wire::MDS_CLOSE_SESSION, wire::Empty());
  EXPECT_TRUE(Finish(close).status.ok());
  CommitAll();
  EXPECT_FALSE(first->answer.has_value());
  EXPECT_TRUE(core->names().LockHolders()->empty()) << "a restart would wait for it";
  session = 8;
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
}

TEST_F(LockTest, WhoEndedWhileHoldersWereAwaitedGetsNoLock) {
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
  Restart();
  session = 8;
  const auto early = SendLock(wire::FileLock::WRITE);
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  session = 7;
  OpenSession();  // without its lock
  CommitAll();
  EXPECT_FALSE(early->answer.has_value());
  EXPECT_EQ(Heard(SendLock(wire::FileLock::WRITE)), wire::LockReply::GRANTED);
}

TEST_F(LockTest, MalformedRangesAreRefused) {
  wire::LockRequest request;
  *request.mutable_lock() = Held(wire::FileLock::WRITE, 10, 9);
  EXPECT_EQ(Code(wire::MDS_LOCK, request), ErrorCode::kInvalid);
  *request.mutable_lock() = Held(wire::FileLock::WRITE, 0, UINT64_MAX);
  EXPECT_EQ(Code(wire::MDS_LOCK, request), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace weir::mds
