#include "client/vfs/file_locks.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>

#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

constexpr uint64_t kHandle = 3;
constexpr InodeId kFile{9};

class FileLocksTest : public ::testing::Test {
 protected:
  struct Sent {
    uint32_t method;
    std::string body;
    FileLocks::Reply reply;
  };

  LockAsk Ask(LockAsk::Type type, uint64_t owner = 1, bool wait = false) {
    LockAsk ask;
    ask.inode = kFile;
    ask.handle = kHandle;
    ask.type = type;
    ask.owner = owner;
    ask.wait = wait;
    return ask;
  }
  uint64_t Set(const LockAsk& ask) {
    const uint64_t ticket = locks_.NewTicket();
    locks_.Set(ask, ticket, [this](int error) { errors_.push_back(error); });
    return ticket;
  }
  void Hear(wire::LockReply::Verdict verdict) {
    wire::LockReply reply;
    reply.set_verdict(verdict);
    Sent sent = std::move(sent_.front());
    sent_.pop_front();
    sent.reply(reply);
  }
  void Hold(LockAsk::Type type, uint64_t owner = 1) {
    Set(Ask(type, owner));
    Hear(wire::LockReply::GRANTED);
  }
  wire::LockRequest Next() {
    wire::LockRequest request;
    EXPECT_TRUE(request.ParseFromString(sent_.front().body));
    return request;
  }

  std::deque<Sent> sent_;
  std::vector<int> errors_;
  FileLocks locks_{[this](uint32_t method, const google::protobuf::MessageLite& request, bool,
                          FileLocks::Reply reply) {
    sent_.push_back({method, request.SerializeAsString(), std::move(reply)});
  }};
};

TEST_F(FileLocksTest, TellsThroughWhichHandlesWhatIsLostWasTaken) {
  constexpr uint64_t kOther = 4;
  Hold(LockAsk::Type::kRead);
  LockAsk other = Ask(LockAsk::Type::kRead, 2);
  other.handle = kOther;
  Set(other);
  Hear(wire::LockReply::GRANTED);
  Set(Ask(LockAsk::Type::kNone));  // the first ends
  Hear(wire::LockReply::GRANTED);
  const std::vector<wire::FileLock> told = locks_.ToTell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(locks_.Lost(told[0]), std::vector<uint64_t>{kOther});
  EXPECT_TRUE(locks_.Held().empty());
  EXPECT_TRUE(locks_.Lost(told[0]).empty());
}

// The accident: one of them was lost and all were forgotten. Nobody gave back what the MDS went on
// holding, so that the file stayed locked until the mount ended.
TEST_F(FileLocksTest, WhatIsLeftOfAFileIsKept) {
  Hold(LockAsk::Type::kWrite);
  LockAsk flock = Ask(LockAsk::Type::kWrite);
  flock.flock = true;
  Set(flock);
  Hear(wire::LockReply::GRANTED);
  wire::FileLock part = locks_.ToTell()[0];
  part.set_first(10);
  part.set_last(19);
  locks_.Lost(part);
  const std::vector<wire::FileLock> held = locks_.Held();
  ASSERT_EQ(held.size(), 3u);
  EXPECT_EQ(held[0].last(), 9u);
  EXPECT_EQ(held[1].first(), 20u);
  EXPECT_TRUE(held[2].flock());
  locks_.Closed(kFile, 1, [] {});
  EXPECT_EQ(Next().lock().type(), wire::FileLock::NONE) << "its end is told";
}

// The accident: so was a lock that was granted while the MDS was asked, by the same owner or
// another one.
TEST_F(FileLocksTest, WhatWasGrantedSinceItWasToldIsKept) {
  Hold(LockAsk::Type::kWrite);
  const std::vector<wire::FileLock> told = locks_.ToTell();
  Hold(LockAsk::Type::kRead, 2);
  LockAsk within = Ask(LockAsk::Type::kRead);
  within.first = 5;
  within.last = 6;
  Set(within);
  Hear(wire::LockReply::GRANTED);
  LockAsk ended = Ask(LockAsk::Type::kNone);
  ended.first = 6;
  Set(ended);
  Hear(wire::LockReply::GRANTED);
  locks_.Lost(told[0]);
  const std::vector<wire::FileLock> held = locks_.Held();
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].owner(), 1u);
  EXPECT_EQ(held[0].first(), 5u);
  EXPECT_EQ(held[0].last(), 5u);
  EXPECT_EQ(held[1].owner(), 2u);
  locks_.ToTell();
  locks_.Lost(held[0]);
  EXPECT_EQ(locks_.Held().size(), 1u) << "by now it was told";
}

TEST_F(FileLocksTest, WhatIsHeldIsToldToAnMdsThatRestarted) {
  Hold(LockAsk::Type::kWrite);
  Set(Ask(LockAsk::Type::kRead, 2));
  Hear(wire::LockReply::BUSY);
  EXPECT_EQ(errors_, (std::vector<int>{0, EAGAIN}));
  ASSERT_EQ(locks_.Held().size(), 1u);
  EXPECT_EQ(locks_.Held()[0].type(), wire::FileLock::WRITE);
  EXPECT_EQ(locks_.Held()[0].owner(), 1u);
  Set(Ask(LockAsk::Type::kNone));
  EXPECT_TRUE(locks_.Held().empty()) << "gone before the MDS answers";
}

TEST_F(FileLocksTest, AWaiterAsksForTheOutcome) {
  Set(Ask(LockAsk::Type::kWrite, 1, true));
  Hear(wire::LockReply::WAITING);
  ASSERT_EQ(sent_.front().method, wire::MDS_LOCK_WAIT);
  EXPECT_TRUE(locks_.Held().empty());
  Hear(wire::LockReply::UNKNOWN);
  ASSERT_EQ(sent_.front().method, wire::MDS_LOCK) << "the MDS forgot it: ask again";
  Hear(wire::LockReply::WAITING);
  Hear(wire::LockReply::GRANTED);
  EXPECT_EQ(errors_, std::vector<int>{0});
  EXPECT_EQ(locks_.Held().size(), 1u);
}

TEST_F(FileLocksTest, AnInterruptedWaiterEndsWithWhatTheMdsSays) {
  const uint64_t first = Set(Ask(LockAsk::Type::kWrite, 1, true));
  Hear(wire::LockReply::WAITING);
  locks_.Cancel(first);
  ASSERT_EQ(sent_.back().method, wire::MDS_LOCK_CANCEL);
  Hear(wire::LockReply::CANCELLED);
  EXPECT_EQ(errors_, std::vector<int>{EINTR});
  sent_.clear();

  const uint64_t second = Set(Ask(LockAsk::Type::kWrite, 1, true));
  Hear(wire::LockReply::WAITING);
  locks_.Cancel(second);
  Hear(wire::LockReply::GRANTED);  // just before
  EXPECT_EQ(errors_.back(), 0);
  sent_.clear();

  const uint64_t third = Set(Ask(LockAsk::Type::kWrite, 2, true));
  locks_.Cancel(third);
  Hear(wire::LockReply::WAITING);  // the cancel may have overtaken a repeated lock
  Hear(wire::LockReply::GRANTED);  // of the first cancel: ignored
  ASSERT_EQ(sent_.front().method, wire::MDS_LOCK_CANCEL);
}

TEST_F(FileLocksTest, ACloseGivesBackTheClosersBytesAndWaitsForIt) {
  bool closed = false;
  locks_.Closed(kFile, 1, [&] { closed = true; });
  EXPECT_TRUE(closed) << "it has none";
  EXPECT_TRUE(sent_.empty());
  Hold(LockAsk::Type::kWrite);
  closed = false;
  locks_.Closed(kFile, 2, [&] { closed = true; });
  EXPECT_TRUE(closed) << "another process has";
  closed = false;
  locks_.Closed(kFile, 1, [&] { closed = true; });
  EXPECT_FALSE(closed);
  EXPECT_EQ(Next().lock().type(), wire::FileLock::NONE);
  EXPECT_EQ(Next().lock().last(), FileLock::kLastByte);
  Hear(wire::LockReply::GRANTED);
  EXPECT_TRUE(closed);
}

TEST_F(FileLocksTest, ReleasingAHandleGivesBackWhatWasLockedThroughIt) {
  LockAsk flock = Ask(LockAsk::Type::kRead, 5);
  flock.flock = true;
  Set(flock);
  Hear(wire::LockReply::GRANTED);
  LockAsk elsewhere = Ask(LockAsk::Type::kRead, 6);
  elsewhere.handle = kHandle + 1;
  Set(elsewhere);
  Hear(wire::LockReply::GRANTED);
  locks_.Released(kFile, kHandle);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(Next().lock().flock());
  EXPECT_EQ(Next().lock().owner(), 5u);
  ASSERT_EQ(locks_.Held().size(), 1u);
  EXPECT_EQ(locks_.Held()[0].owner(), 6u);
  locks_.Released(kFile, kHandle);
  EXPECT_EQ(sent_.size(), 1u) << "once";
}

// What one process notes another one may restore: it holds the same, under tickets of its own.
TEST(FileLocksNotesTest, ASuccessorHoldsWhatWasNoted) {
  std::deque<FileLocks::Reply> replies;
  const FileLocks::Send send = [&](uint32_t, const google::protobuf::MessageLite&, bool,
                                   FileLocks::Reply reply) { replies.push_back(std::move(reply)); };
  std::vector<LockAsk> notes;
  FileLocks first(send, [&](const LockAsk& ask) { notes.push_back(ask); });
  LockAsk ask;
  ask.inode = kFile;
  ask.handle = kHandle;
  ask.type = LockAsk::Type::kWrite;
  ask.owner = 1;
  wire::LockReply granted;
  granted.set_verdict(wire::LockReply::GRANTED);
  first.Set(ask, first.NewTicket(), [&](int error) {
    EXPECT_EQ(error, 0);
    EXPECT_EQ(notes.size(), 1u) << "noted before it is told";
  });
  EXPECT_TRUE(notes.empty());
  replies.front()(granted);
  ASSERT_EQ(notes.size(), 1u);
  FileLocks successor(send, nullptr, 1000);
  successor.Restore(notes);
  EXPECT_EQ(successor.Held().size(), 1u);
  EXPECT_EQ(successor.NewTicket(), 1001u);
  // The handle's release ends it there.
  const size_t before = replies.size();
  successor.Released(kFile, kHandle);
  EXPECT_EQ(replies.size(), before + 1);
  // An end is noted when the MDS has confirmed it.
  ask.type = LockAsk::Type::kNone;
  first.Set(ask, 0, [](int) {});
  EXPECT_EQ(notes.size(), 1u);
  replies.back()(granted);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes.back().type, LockAsk::Type::kNone);
}

// Who asks whether a lock is about to go is answered when everything that could end one is over.
TEST_F(FileLocksTest, WhatEndsLocksIsWaitedForAndWhatComesLaterIsNot) {
  std::vector<int> ended;
  locks_.WhenEnded([&] { ended.push_back(0); });
  EXPECT_EQ(ended, std::vector<int>{0}) << "nothing is under way";
  auto early = locks_.Ending();
  locks_.WhenEnded([&] { ended.push_back(1); });
  auto late = locks_.Ending();
  locks_.WhenEnded([&] { ended.push_back(2); });
  late = nullptr;
  EXPECT_EQ(ended, std::vector<int>{0}) << "the early one is under way for both";
  auto latest = locks_.Ending();
  early = nullptr;
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2}));
}

TEST_F(FileLocksTest, AReleaseIsOverWhenTheMdsHasAnswered) {
  Hold(LockAsk::Type::kWrite);
  locks_.Released(kFile, kHandle);
  bool ended = false;
  locks_.WhenEnded([&] { ended = true; });
  EXPECT_FALSE(ended);
  EXPECT_EQ(Next().lock().type(), wire::FileLock::NONE);
  Hear(wire::LockReply::GRANTED);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace weir::client
