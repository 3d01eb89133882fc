// Directory leases at the MDS: who gets one, whose changes wait, and for how long.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class DirLeaseTest : public MdsFixture {
 protected:
  static constexpr uint64_t kOther = 8;

  void SetUp() override {
    MdsFixture::SetUp();
    session = kOther;
    OpenSession();
    session = 7;
    OpenSession();
  }
  void OpenSession() {
    wire::OpenSessionRequest request;
    request.set_leases(true);
    const auto reply = Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
    EXPECT_NE(reply.lease_epoch(), 0u);
    epoch = reply.lease_epoch();
  }
  wire::EntryReply Look(uint64_t parent, const std::string& name) {
    return Ask<wire::EntryReply>(wire::MDS_LOOKUP, Name(parent, name));
  }
  // Held until something is newer than what is said to be known here.
  std::shared_ptr<TestCall> Watch(uint64_t obeyed) {
    wire::WatchRequest request;
    request.set_have_epoch(UINT64_MAX);
    request.set_have_tag_epoch(UINT64_MAX);
    request.set_wait_ms(500);
    request.set_lease_seq(obeyed);
    return Send(wire::MDS_WATCH, request);
  }
  static wire::WatchReply Parse(const TestCall& call) {
    wire::WatchReply reply;
    EXPECT_TRUE(call.answer.has_value());
    if (!call.answer.has_value()) return reply;
    EXPECT_TRUE(reply.ParseFromString(call.answer->body));
    return reply;
  }
  std::shared_ptr<TestCall> StartCreate(uint64_t parent, const std::string& name) {
    auto call = Send(wire::MDS_CREATE, New(parent, name, 0644));
    core->names().CommitPrepared();
    return call;
  }
  void Pass(Duration time) {
    clock.Advance(time);
    core->Tick();
    core->names().CommitPrepared();
  }

  uint64_t epoch = 0;  // of the session that was opened last
};

TEST_F(DirLeaseTest, ComesWithMkdirAndWithLooksAndTellsOfEmptiness) {
  const auto made = Ask<wire::EntryReply>(wire::MDS_MKNOD, New(kRoot, "d", S_IFDIR | 0755));
  EXPECT_TRUE(made.has_lease());
  EXPECT_TRUE(made.lease().empty());
  const uint64_t d = made.attr().inode();
  CreateOpen(d, "f");
  EXPECT_FALSE(Look(d, "f").has_lease());  // only directories
  EXPECT_TRUE(Look(kRoot, "d").has_lease());
  EXPECT_FALSE(Look(kRoot, "d").lease().empty());
  EXPECT_TRUE(Look(kRoot, ".").has_lease());
  session = 9;  // never said that it obeys recalls
  EXPECT_FALSE(Look(kRoot, "d").has_lease());
}

TEST_F(DirLeaseTest, AnothersChangeWaitsUntilTheHolderHasObeyed) {
  const uint64_t d = Mkdir(kRoot, "d");
  const auto watch = Watch(0);
  EXPECT_FALSE(watch->answer.has_value());
  session = kOther;
  const auto create = StartCreate(d, "f");
  EXPECT_FALSE(create->answer.has_value());
  const wire::WatchReply recall = Parse(*watch);
  EXPECT_EQ(recall.lease_seq(), 1u);
  ASSERT_EQ(recall.recalled_size(), 1);
  EXPECT_EQ(recall.recalled(0), d);
  // What it remembers of the directory itself is given back by itself.
  ASSERT_EQ(recall.recalled_files_size(), 1);
  session = 7;
  Watch(recall.lease_seq());
  core->names().CommitPrepared();
  EXPECT_FALSE(create->answer.has_value());
  wire::YieldRequest yield;
  yield.set_epoch(epoch);
  yield.set_seq(recall.file_lease_seq());
  yield.add_inodes(recall.recalled_files(0));
  EXPECT_EQ(Code(wire::MDS_YIELD, yield), ErrorCode::kOk);
  core->names().CommitPrepared();
  EXPECT_TRUE(create->answer.has_value());
  EXPECT_TRUE(create->answer->status.ok());
}

TEST_F(DirLeaseTest, AnswersThatChangeNothingAndOnesOwnChangesDoNotWait) {
  const uint64_t d = Mkdir(kRoot, "d");
  EXPECT_EQ(Release(CreateOpen(d, "f")), ErrorCode::kOk);
  wire::SetAttrRequest times = Change(d);
  times.set_mtime_now(true);
  EXPECT_EQ(Code(wire::MDS_SETATTR, times), ErrorCode::kOk);
  session = kOther;
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(d)), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(d, "f")), ErrorCode::kOk);
}

TEST_F(DirLeaseTest, EveryKindOfChangeAsksTheLeaseBack) {
  for (int kind = 0; kind < 7; ++kind) {
    SCOPED_TRACE(kind);
    session = 7;
    const std::string name = "d" + std::to_string(kind);
    const uint64_t d = Mkdir(kRoot, name);
    const uint64_t f = Touch(d, "f");
    Mkdir(d, "sub");
    session = kOther;
    wire::SetAttrRequest chmod = Change(d);
    chmod.set_mode(0700);
    std::shared_ptr<TestCall> call;
    if (kind == 0) call = Send(wire::MDS_MKNOD, New(d, "g", S_IFREG | 0644));
    if (kind == 1) call = Send(wire::MDS_UNLINK, Name(d, "f"));
    if (kind == 2) call = Send(wire::MDS_RMDIR, Name(d, "sub"));
    if (kind == 3) call = Send(wire::MDS_LINK, NewLink(f, d, "g"));
    if (kind == 4) call = Send(wire::MDS_RENAME, Move(d, "f", d, "g"));
    if (kind == 5) call = Send(wire::MDS_SETATTR, chmod);
    if (kind == 6) call = Send(wire::MDS_CREATE, New(d, "g", 0644));
    core->names().CommitPrepared();
    EXPECT_FALSE(call->answer.has_value());
    Pass(2100ms);
    if (kind == 2) Pass(2100ms);  // what is removed was leased, too
    ASSERT_TRUE(call->answer.has_value());
    EXPECT_TRUE(call->answer->status.ok()) << call->answer->status;
  }
}

TEST_F(DirLeaseTest, ASilentHolderIsWaitedForOnlyAsLongAsItBelieves) {
  const uint64_t d = Mkdir(kRoot, "d");
  session = kOther;
  const auto create = StartCreate(d, "f");
  Pass(1900ms);
  EXPECT_FALSE(create->answer.has_value());
  Pass(200ms);
  EXPECT_TRUE(create->answer.has_value());
  // What it has not heard of is told when it comes back, and is no new lease before.
  session = 7;
  Pass(10s);
  EXPECT_FALSE(Look(kRoot, "d").has_lease());
  const wire::WatchReply late = Parse(*Watch(0));
  ASSERT_EQ(late.recalled_size(), 1);
  EXPECT_EQ(late.recalled(0), d);
}

TEST_F(DirLeaseTest, AHolderThatLeavesIsNotWaitedFor) {
  const uint64_t d = Mkdir(kRoot, "d");
  session = kOther;
  const auto create = StartCreate(d, "f");
  session = 7;
  Try(wire::MDS_CLOSE_SESSION, wire::Empty());
  core->names().CommitPrepared();
  EXPECT_TRUE(create->answer.has_value());
}

TEST_F(DirLeaseTest, ADirectoryThatWasRecalledRests) {
  const uint64_t d = Mkdir(kRoot, "d");
  session = kOther;
  const auto create = StartCreate(d, "f");
  session = 7;
  Watch(1);
  EXPECT_FALSE(Look(kRoot, "d").has_lease());
  Pass(4100ms);
  EXPECT_TRUE(Look(kRoot, "d").has_lease());
}

TEST_F(DirLeaseTest, AfterARestartChangesWaitForHoldersNobodyRemembers) {
  const uint64_t d = Mkdir(kRoot, "d");
  Restart();
  session = kOther;
  OpenSession();
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(kRoot, "d")), ErrorCode::kOk);
  const auto create = StartCreate(d, "f");
  EXPECT_FALSE(create->answer.has_value());
  Pass(2100ms);
  EXPECT_TRUE(create->answer.has_value());
}

TEST_F(DirLeaseTest, AStoreThatNeverGaveLeasesNeedNotWait) {
  Restart();
  session = kOther;
  EXPECT_TRUE(StartCreate(kRoot, "f")->answer.has_value());
}

}  // namespace
}  // namespace weir::mds
