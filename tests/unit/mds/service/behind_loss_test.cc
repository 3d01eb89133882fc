// Goal: a mount that has not repeated what it was told before a restart of the MDS is given up:
// what its processes change behind that is not done without it, wherever it waited, and what it
// reports is taken.
#include <algorithm>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;
using Calls = std::vector<std::shared_ptr<TestCall>>;

class BehindLossTest : public MdsFixture {
 protected:
  static constexpr uint64_t kLost = 7;
  static constexpr uint64_t kOther = 8;

  void SetUp() override {
    MdsFixture::SetUp();
    MakeClass("gold");
    file_ = Touch(kRoot, "file");
    ASSERT_EQ(Code(wire::MDS_SETXATTR, Xattr(file_, "user.old", "old")), ErrorCode::kOk);
    session = kLost;
    OpenSession();
    Mkdir(kRoot, "lease");  // the first of which is durable at once
    ASSERT_TRUE(Send(wire::MDS_MKNOD, New(kRoot, "lost", S_IFDIR | 0755))->answer.has_value());
    Restart();
  }
  void OpenSession(bool repeats = false) {
    wire::OpenSessionRequest request;
    request.set_repeats(repeats);
    request.set_leases(true);
    request.set_ordered_within_ms(1000);
    request.set_keeps(true);
    Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  }
  // Its time to repeat what it was told is over.
  void GiveUp() {
    clock.Advance(16s);
    core->Tick();
    CommitAll();
    ASSERT_EQ(core->keeper().map()->fences.count(kLost), 1u);
  }
  // An OSD says that nothing older is left of whoever was fenced.
  void OsdSays(uint64_t fenced) {
    wire::WatchRequest request;
    request.set_osd_id(0);
    request.set_have_epoch(core->keeper().map()->epoch.value);
    request.set_fence_epoch(fenced);
    session = 1000;
    Send(wire::MDS_WATCH, request);
  }
  // No OSD has anything of it any more, and it loses what it had.
  void Evict() {
    OsdSays(core->keeper().map()->fences.at(kLost).value);
    core->Tick();
    CommitAll();
    session = kLost;
  }
  void PassMinutes() {
    clock.Advance(3min);
    for (int i = 0; i < 2; ++i) {
      core->Tick();
      CommitAll();
    }
  }
  void CommitAll() {
    while (core->names().CommitPrepared()) {
    }
  }
  static bool AnyAnswered(const Calls& calls) {
    return std::any_of(calls.begin(), calls.end(),
                       [](const auto& call) { return call->answer.has_value(); });
  }
  // What processes change.
  Calls SendChanges() {
    wire::SetAttrRequest mode = Change(file_);
    mode.set_mode(0600);
    wire::SetAttrRequest size = Change(file_);
    size.set_size(100);
    return {Send(wire::MDS_MKNOD, New(kRoot, "behind", S_IFDIR | 0755)),
            Send(wire::MDS_RENAME, Move(kRoot, "file", kRoot, "moved")),
            Send(wire::MDS_SETATTR, mode),
            Send(wire::MDS_SETATTR, size),
            Send(wire::MDS_SETXATTR, Xattr(file_, "user.new", "new")),
            Send(wire::MDS_SETXATTR, Xattr(file_, "security.label", "new")),
            Send(wire::MDS_SETXATTR, Xattr(file_, "user.qos.class", "gold")),
            Send(wire::MDS_REMOVEXATTR, Xattr(file_, "user.old"))};
  }
  // Rights to write.
  Calls SendWishes() {
    wire::GrowRequest room;
    room.set_inode(file_);
    room.set_end(1 << 20);
    return {Send(wire::MDS_GROW, room), Send(wire::MDS_APPEND, At(file_))};
  }
  static void ExpectRefused(const Calls& calls, ErrorCode code) {
    for (const auto& call : calls) {
      ASSERT_TRUE(call->answer.has_value()) << call->method();
      EXPECT_EQ(call->answer->status.code(), code) << call->method();
    }
  }
  uint64_t file_ = 0;
};

TEST_F(BehindLossTest, WhatProcessesChangeIsNotDoneWithoutWhatCameBefore) {
  const Calls waited = SendChanges();
  EXPECT_FALSE(AnyAnswered(waited));
  GiveUp();
  ExpectRefused(waited, ErrorCode::kStale);
  ExpectRefused(SendChanges(), ErrorCode::kStale);  // sent again, before it knows
  session = kOther;
  EXPECT_EQ(List(kRoot), (std::vector<std::string>{"file", "lease"}));
  EXPECT_EQ(Stat(file_).attr().mode() & 0777, 0644u);
  EXPECT_EQ(Stat(file_).attr().size(), 0u);
  EXPECT_EQ(Get(file_, "user.old"), "old");
  EXPECT_EQ(Get(file_, "user.new"), "error no such attribute");
  EXPECT_EQ(Get(file_, "security.label"), "error no such attribute");
  EXPECT_EQ(Get(file_, "user.qos.class"), "error no such attribute");
  Evict();
  OpenSession();
  for (const auto& change : SendChanges()) {
    const Answer answer = Finish(change);
    EXPECT_TRUE(answer.status.ok()) << change->method() << ": " << answer.status;
  }
}

// The accident: others had gone on without what the mount was told, and the MDS after that took it
// from the mount all the same: a name that somebody had found there and used was gone.
TEST_F(BehindLossTest, TheNextMdsKnowsWhatIsLost) {
  wire::ReplayRequest replay;
  replay.set_method(wire::MDS_MKNOD);
  replay.set_body(New(kRoot, "lost", S_IFDIR | 0755).SerializeAsString());
  replay.set_request_id(1000);
  GiveUp();
  Evict();
  Restart();
  session = kLost;
  ExpectRefused(SendChanges(), ErrorCode::kStale);
  OpenSession(/*repeats=*/true);
  EXPECT_EQ(Code(wire::MDS_REPLAY, replay), ErrorCode::kStale);
  Restart();  // it was told that session is open, and not that it has heard
  session = kLost;
  ExpectRefused(SendChanges(), ErrorCode::kStale);
  OpenSession(/*repeats=*/true);
  EXPECT_EQ(Code(wire::MDS_REPLAY, replay), ErrorCode::kStale);
  Ask<wire::Empty>(wire::MDS_REPLAYED, wire::Empty());
  clock.Advance(3s);  // nobody knows who held leases before the restart
  EXPECT_EQ(List(kRoot), (std::vector<std::string>{"file", "lease"}));
  for (const auto& change : SendChanges()) {
    const Answer answer = Finish(change);
    EXPECT_TRUE(answer.status.ok()) << change->method() << ": " << answer.status;
  }
  Restart();  // and keeps what it is told from then on
  session = kLost;
  EXPECT_FALSE(AnyAnswered(SendChanges()));
}

// What it asked for, and the OPEN_SESSION before that, were still being loaded then.
class GivenUpMeanwhileTest : public BehindLossTest {
 protected:
  void SetUp() override {
    BehindLossTest::SetUp();
    on_missing = [] {};  // who loads is the test
    Restart();
  }
  std::shared_ptr<TestCall> SendOpen() {
    wire::OpenSessionRequest request;
    request.set_repeats(true);
    request.set_ordered_within_ms(1000);
    request.set_keeps(true);
    return Send(wire::MDS_OPEN_SESSION, request);
  }
  void Load() {
    while (core->names().LoadMissing()) {
    }
    CommitAll();
  }
};

// The accident: the record that it was given up was overwritten, and the next MDS waited for what
// it had to repeat, though others had gone on without it.
TEST_F(GivenUpMeanwhileTest, ItsSessionDoesNotMakeItAKeeperAgain) {
  const auto open = SendOpen();
  EXPECT_FALSE(open->answer.has_value());
  GiveUp();
  Load();
  EXPECT_EQ(core->names().Keepers(/*given_up=*/true), std::vector<uint64_t>{kLost});
  Restart();
  EXPECT_EQ(core->names().Keepers(/*given_up=*/true), std::vector<uint64_t>{kLost});
}

TEST_F(GivenUpMeanwhileTest, WhatItWasRepeatingIsNotDone) {
  const auto open = SendOpen();
  Load();
  ASSERT_TRUE(open->answer.has_value() && open->answer->status.ok());
  cold.Forget();
  wire::ReplayRequest replay;
  replay.set_method(wire::MDS_MKNOD);
  replay.set_body(New(kRoot, "lost", S_IFDIR | 0755).SerializeAsString());
  replay.set_request_id(1000);
  replay.set_stamp_ns(1);
  const auto repeated = Send(wire::MDS_REPLAY, replay);
  EXPECT_FALSE(repeated->answer.has_value());
  GiveUp();
  Load();
  ASSERT_TRUE(repeated->answer.has_value());
  EXPECT_EQ(repeated->answer->status.code(), ErrorCode::kStale);
}

// Of a mount that never comes back nothing stays.
TEST_F(BehindLossTest, WhoIsGivenUpAndNeverComesBackIsForgotten) {
  GiveUp();
  EXPECT_EQ(core->names().Keepers(/*given_up=*/true), std::vector<uint64_t>{kLost});
  Evict();
  Restart();
  EXPECT_EQ(core->names().Keepers(/*given_up=*/true), std::vector<uint64_t>{kLost});
  std::vector<uint64_t> others;
  for (uint64_t i = 0; i < 1024; ++i) others.push_back(2000 + i);
  ASSERT_TRUE(core->keeper().Fence(others).ok());
  PassMinutes();
  EXPECT_TRUE(core->names().Keepers(/*given_up=*/true).empty());
}

// The accident: it was forgotten after a minute, and a second restart took from it what it had
// asked for behind what is lost.
TEST_F(BehindLossTest, WhoComesBackLateIsStillBehindWhatIsLost) {
  GiveUp();
  Evict();
  PassMinutes();
  Restart();
  session = kLost;
  ExpectRefused(SendChanges(), ErrorCode::kStale);
  OpenSession(/*repeats=*/true);
  ExpectRefused(SendChanges(), ErrorCode::kStale);
  Ask<wire::Empty>(wire::MDS_REPLAYED, wire::Empty());
  clock.Advance(3s);  // nobody knows who held leases before the restart
  for (const auto& change : SendChanges()) {
    const Answer answer = Finish(change);
    EXPECT_TRUE(answer.status.ok()) << change->method() << ": " << answer.status;
  }
}

TEST_F(BehindLossTest, WhatItReportsAndAsksIsAnswered) {
  wire::WroteRequest wrote;
  wrote.set_inode(file_);
  wrote.set_size_at_least(5000);
  wrote.set_epoch(core->keeper().map()->epoch.value);
  const Calls waited = {Send(wire::MDS_WROTE, wrote), Send(wire::MDS_GETATTR, At(file_)),
                        Send(wire::MDS_GETXATTR, Xattr(file_, "user.old"))};
  EXPECT_FALSE(AnyAnswered(waited));
  GiveUp();
  for (const auto& call : waited) EXPECT_TRUE(Finish(call).status.ok()) << call->method();
  EXPECT_EQ(Code(wire::MDS_WROTE, wrote), ErrorCode::kStaleEpoch) << "by now it is fenced";
  session = kOther;
  EXPECT_EQ(Stat(file_).attr().size(), 5000u);
}

// The accident: the mount was gone, and for 30 s nobody else could append to the file.
TEST_F(BehindLossTest, WhoIsGivenUpGetsNoRightToWrite) {
  const Calls waited = SendWishes();
  EXPECT_FALSE(AnyAnswered(waited));
  GiveUp();
  ExpectRefused(waited, ErrorCode::kStaleEpoch);
  ExpectRefused(SendWishes(), ErrorCode::kStaleEpoch);
  Evict();
  OpenSession();
  for (const auto& wish : SendWishes()) EXPECT_TRUE(Finish(wish).status.ok()) << wish->method();
}

// By whatever: it has repeated all, is silent while another one waits for what it may have
// buffered.
TEST_F(BehindLossTest, WhoIsBeingEvictedGetsNoRightToWrite) {
  Ask<wire::Empty>(wire::MDS_CLOSE_SESSION, wire::Empty());
  OpenSession();
  clock.Advance(3s);  // nobody knows who held leases before the restart
  const uint64_t held = CreateOpen(kRoot, "held");
  session = kOther;
  const auto look = Send(wire::MDS_GETATTR, At(held));
  for (int i = 0; i < 4; ++i) {
    clock.Advance(2s);
    OsdSays(0);
    core->Tick();
  }
  ASSERT_EQ(core->keeper().map()->fences.count(kLost), 1u);
  session = kLost;
  ExpectRefused(SendWishes(), ErrorCode::kStaleEpoch);
  Evict();
  for (const auto& wish : SendWishes()) EXPECT_TRUE(Finish(wish).status.ok()) << wish->method();
  EXPECT_TRUE(Finish(look).status.ok());
}

}  // namespace
}  // namespace weir::mds
