// The right to append at the MDS: one session at a time, and what waits for it.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class AppendTest : public MdsFixture {
 protected:
  static constexpr uint64_t kOther = 8;

  void SetUp() override {
    MdsFixture::SetUp();
    for (const uint64_t one : {kOther, uint64_t{7}}) {
      session = one;
      wire::OpenSessionRequest request;
      request.set_leases(true);
      Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
    }
    file_ = Touch(kRoot, "log");
  }
  std::shared_ptr<TestCall> StartAppend(uint64_t who) {
    session = who;
    auto call = Send(wire::MDS_APPEND, At(file_));
    core->names().CommitPrepared();
    return call;
  }
  static wire::AppendReply Parse(const TestCall& call) {
    wire::AppendReply reply;
    EXPECT_TRUE(call.answer.has_value());
    if (!call.answer.has_value()) return reply;
    EXPECT_TRUE(reply.ParseFromString(call.answer->body));
    return reply;
  }
  std::vector<uint64_t> RecallsOf(uint64_t who) {
    session = who;
    wire::WatchRequest request;
    const auto reply = Ask<wire::WatchReply>(wire::MDS_WATCH, request);
    return {reply.recalled_appends().begin(), reply.recalled_appends().end()};
  }
  void GiveBack(uint64_t who, uint64_t grant) {
    session = who;
    wire::GiveBackRequest request;
    request.set_inode(file_);
    request.set_grant(grant);
    Ask<wire::Empty>(wire::MDS_GIVE_BACK, request);
    core->names().CommitPrepared();
  }
  uint64_t file_ = 0;
};

TEST_F(AppendTest, TheNextGetsItWithTheSizeThatTheFirstHasMade) {
  const wire::AppendReply first = Parse(*StartAppend(7));
  EXPECT_NE(first.grant(), 0u);
  EXPECT_EQ(first.attr().size(), 0u);
  const auto second = StartAppend(kOther);
  EXPECT_FALSE(second->answer.has_value());
  EXPECT_EQ(RecallsOf(7), std::vector<uint64_t>{file_});
  Grow(file_, 100);
  EXPECT_FALSE(second->answer.has_value());
  GiveBack(7, first.grant());
  EXPECT_EQ(Parse(*second).attr().size(), 100u);
  EXPECT_NE(Parse(*second).grant(), first.grant());
  EXPECT_EQ(RecallsOf(7), std::vector<uint64_t>{});
}

TEST_F(AppendTest, WhatIsGivenBackLateIsNotTheNewerRight) {
  const uint64_t first = Parse(*StartAppend(7)).grant();
  GiveBack(7, first);
  const uint64_t again = Parse(*StartAppend(7)).grant();
  GiveBack(7, first);  // sent twice
  const auto other = StartAppend(kOther);
  EXPECT_FALSE(other->answer.has_value());
  GiveBack(7, again);
  EXPECT_NE(Parse(*other).grant(), 0u);
}

// Goal: two mounts never think at the same time that they have the right. Method: the one that
// gives it back asks for the next before that.
TEST_F(AppendTest, WhoMustGiveBackGetsNoNewerOneBefore) {
  const uint64_t first = Parse(*StartAppend(7)).grant();
  const auto other = StartAppend(kOther);
  const auto again = StartAppend(7);
  EXPECT_FALSE(again->answer.has_value());
  GiveBack(7, first);
  EXPECT_NE(Parse(*other).grant(), 0u);
  EXPECT_FALSE(again->answer.has_value());
  GiveBack(kOther, Parse(*other).grant());
  EXPECT_NE(Parse(*again).grant(), 0u);
}

TEST_F(AppendTest, TruncationsAndReportsOfOthersAskItBack) {
  for (const bool truncate : {true, false}) {
    const uint64_t grant = Parse(*StartAppend(7)).grant();
    session = kOther;
    wire::SetAttrRequest cut = Change(file_);
    cut.set_size(0);
    wire::WroteRequest wrote;
    wrote.set_inode(file_);
    const auto call = truncate ? Send(wire::MDS_SETATTR, cut) : Send(wire::MDS_WROTE, wrote);
    core->names().CommitPrepared();
    EXPECT_FALSE(call->answer.has_value());
    GiveBack(7, grant);
    EXPECT_TRUE(call->answer.has_value());
  }
}

TEST_F(AppendTest, AHolderThatLeavesOrStaysSilentIsNotWaitedForForEver) {
  Parse(*StartAppend(7));
  auto waiting = StartAppend(kOther);
  session = 7;
  Try(wire::MDS_CLOSE_SESSION, wire::Empty());
  core->names().CommitPrepared();
  EXPECT_NE(Parse(*waiting).grant(), 0u);
}

TEST_F(AppendTest, WhoObeysNoRecallsGetsNone) {
  EXPECT_EQ(Parse(*StartAppend(9)).grant(), 0u);
  EXPECT_NE(Parse(*StartAppend(7)).grant(), 0u);
}

}  // namespace
}  // namespace weir::mds
