// Goal: nobody is refused a lock whose file was closed before he asked, though the holder's mount
// hears of that later; and nobody waits for a mount that does not answer.
// Method: the orders in which the question, the unlock and the answer may come.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class LockSettleTest : public MdsFixture {
 protected:
  static constexpr uint64_t kHolder = 7;
  static constexpr uint64_t kAsker = 8;

  void SetUp() override {
    MdsFixture::SetUp();
    for (const uint64_t id : {kHolder, kAsker}) {
      session = id;
      wire::OpenSessionRequest request;
      request.set_settles_locks(id == kHolder);
      Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
    }
  }
  wire::LockRequest Lock(wire::FileLock::Type type) {
    wire::LockRequest request;
    request.mutable_lock()->set_inode(5);
    request.mutable_lock()->set_flock(true);
    request.mutable_lock()->set_type(type);
    request.mutable_lock()->set_last(9);
    request.mutable_lock()->set_owner(session);
    return request;
  }
  std::shared_ptr<TestCall> SendLock(uint64_t by, wire::FileLock::Type type,
                                     uint32_t method = wire::MDS_LOCK) {
    session = by;
    auto call = Send(method, Lock(type));
    while (core->names().CommitPrepared()) {
    }
    return call;
  }
  static wire::LockReply Heard(const std::shared_ptr<TestCall>& call) {
    wire::LockReply reply;
    EXPECT_TRUE(call->answer.has_value());
    EXPECT_TRUE(reply.ParseFromString(call->answer.value_or(Answer{}).body));
    return reply;
  }
  // What the holder is asked, knowing of `seq`; 0: nothing.
  uint64_t Question(uint64_t seq = 0) {
    session = kHolder;
    wire::WatchRequest request;
    request.set_have_epoch(core->keeper().map()->epoch.value);
    request.set_have_tag_epoch(1'000);
    request.set_wait_ms(1000);
    request.set_lock_seq(seq);
    const auto call = Send(wire::MDS_WATCH, request);
    if (!call->answer.has_value()) return 0;
    wire::WatchReply reply;
    EXPECT_TRUE(reply.ParseFromString(call->answer->body));
    return reply.lock_seq();
  }
  void Settle(uint64_t seq) {
    session = kHolder;
    wire::LocksSettledRequest request;
    request.set_seq(seq);
    EXPECT_EQ(Code(wire::MDS_LOCKS_SETTLED, request), ErrorCode::kOk);
  }
};

TEST_F(LockSettleTest, AnUnlockOnItsWayIsWaitedFor) {
  EXPECT_EQ(Heard(SendLock(kHolder, wire::FileLock::WRITE)).verdict(), wire::LockReply::GRANTED);
  EXPECT_EQ(Question(), 0u);
  const auto asked = SendLock(kAsker, wire::FileLock::WRITE);
  EXPECT_FALSE(asked->answer.has_value());
  const uint64_t seq = Question();
  EXPECT_NE(seq, 0u);
  EXPECT_EQ(Question(seq), 0u) << "once";
  SendLock(kHolder, wire::FileLock::NONE);
  Settle(seq);
  EXPECT_EQ(Heard(asked).verdict(), wire::LockReply::GRANTED);
}

TEST_F(LockSettleTest, WhatIsStillHeldIsRefused) {
  SendLock(kHolder, wire::FileLock::WRITE);
  const auto asked = SendLock(kAsker, wire::FileLock::READ);
  Settle(Question());
  EXPECT_EQ(Heard(asked).verdict(), wire::LockReply::BUSY);
}

TEST_F(LockSettleTest, AnAnswerToAnEarlierQuestionIsNoneToThis) {
  SendLock(kHolder, wire::FileLock::WRITE);
  const auto first = SendLock(kAsker, wire::FileLock::WRITE);
  const uint64_t seq = Question();
  const auto second = SendLock(kAsker, wire::FileLock::WRITE);
  Settle(seq);
  EXPECT_EQ(Heard(first).verdict(), wire::LockReply::BUSY);
  EXPECT_FALSE(second->answer.has_value()) << "the file may have been closed in between";
  Settle(Question(seq));
  EXPECT_EQ(Heard(second).verdict(), wire::LockReply::BUSY);
}

TEST_F(LockSettleTest, ALookAtWhatIsInTheWayAsksToo) {
  SendLock(kHolder, wire::FileLock::WRITE);
  const auto asked = SendLock(kAsker, wire::FileLock::WRITE, wire::MDS_LOCK_TEST);
  EXPECT_FALSE(asked->answer.has_value());
  const uint64_t seq = Question();
  SendLock(kHolder, wire::FileLock::NONE);
  Settle(seq);
  EXPECT_FALSE(Heard(asked).has_conflict());
}

TEST_F(LockSettleTest, TheSameMountIsAskedAsWell) {
  SendLock(kHolder, wire::FileLock::WRITE);
  session = kHolder;
  wire::LockRequest other = Lock(wire::FileLock::WRITE);
  other.mutable_lock()->set_owner(99);
  const auto asked = Send(wire::MDS_LOCK, other);
  EXPECT_FALSE(asked->answer.has_value());
  Settle(Question());
  EXPECT_EQ(Heard(asked).verdict(), wire::LockReply::BUSY);
}

TEST_F(LockSettleTest, ASilentMountIsNotWaitedForForLong) {
  SendLock(kHolder, wire::FileLock::WRITE);
  const auto asked = SendLock(kAsker, wire::FileLock::WRITE);
  clock.Advance(2s);
  core->Tick();
  EXPECT_EQ(Heard(asked).verdict(), wire::LockReply::BUSY);
}

TEST_F(LockSettleTest, OneThatEndsAnswersByThat) {
  SendLock(kHolder, wire::FileLock::WRITE);
  const auto asked = SendLock(kAsker, wire::FileLock::WRITE);
  session = kHolder;
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  EXPECT_EQ(Heard(asked).verdict(), wire::LockReply::GRANTED);
}

TEST_F(LockSettleTest, AMountThatCannotAnswerIsNotAsked) {
  SendLock(kAsker, wire::FileLock::WRITE);
  EXPECT_EQ(Heard(SendLock(kHolder, wire::FileLock::WRITE)).verdict(), wire::LockReply::BUSY);
}

}  // namespace
}  // namespace weir::mds
