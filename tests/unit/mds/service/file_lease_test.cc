// File leases at the MDS: who gets one, who waits for it to come back, and what becomes of a holder
// that cannot be heard.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class FileLeaseTest : public MdsFixture {
 protected:
  static constexpr uint64_t kOther = 8;

  void SetUp() override {
    MdsFixture::SetUp();
    Begin();
  }
  void Begin() {
    session = kOther;
    OpenSession();
    session = 7;
    OpenSession();
  }
  wire::OpenSessionReply OpenSession(const std::vector<uint64_t>& reclaim = {}) {
    wire::OpenSessionRequest request;
    request.set_leases(true);
    for (const uint64_t inode : reclaim) request.add_open_inodes(inode);
    const auto reply = Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
    epochs[session] = reply.lease_epoch();
    return reply;
  }
  wire::EntryReply Open(uint64_t inode, uint32_t flags) {
    return Ask<wire::EntryReply>(wire::MDS_OPEN, NewOpen(inode, flags));
  }
  static wire::OpenRequest NewOpen(uint64_t inode, uint32_t flags) {
    wire::OpenRequest request;
    request.set_inode(inode);
    request.set_flags(flags);
    return request;
  }
  static wire::WroteRequest NewReport(uint64_t inode, uint64_t size, uint64_t epoch) {
    wire::WroteRequest request;
    request.set_inode(inode);
    request.set_size_at_least(size);
    request.set_epoch(epoch);
    return request;
  }
  uint64_t Epoch() { return core->keeper().map()->epoch.value; }
  // Prepared and, if nothing is in its way, answered.
  std::shared_ptr<TestCall> Start(uint64_t who, uint32_t method,
                                  const google::protobuf::Message& request) {
    session = who;
    auto call = Send(method, request);
    core->names().CommitPrepared();
    return call;
  }
  wire::WatchReply Watch(uint64_t who) {
    wire::WatchRequest request;
    session = who;
    return Ask<wire::WatchReply>(wire::MDS_WATCH, request);
  }
  void Yield(uint64_t who, uint64_t inode) {
    wire::YieldRequest request;
    request.set_seq(Watch(who).file_lease_seq());
    request.set_epoch(epochs[who]);
    request.add_inodes(inode);
    session = who;
    EXPECT_EQ(Code(wire::MDS_YIELD, request), ErrorCode::kOk);
    core->names().CommitPrepared();
  }
  // Open for writing by 7, whose lease the other asked back by opening it to read.
  uint64_t SharedFile() {
    const uint64_t file = Touch(kRoot, "f");
    Open(file, 2);
    const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(file, 0));
    Yield(7, file);
    EXPECT_TRUE(Answered(open));
    return file;
  }
  static bool Answered(const std::shared_ptr<TestCall>& call) { return call->answer.has_value(); }
  // An OSD says which map it obeys, and that nothing older is left of whoever was fenced.
  void OsdSays(uint64_t fenced) {
    wire::WatchRequest request;
    request.set_osd_id(0);
    request.set_have_epoch(Epoch());
    request.set_fence_epoch(fenced);
    session = 1000;
    Send(wire::MDS_WATCH, request);
  }
  void Pass(Duration time, uint64_t fenced = 0) {
    for (Duration done{}; done < time; done += 1s) {
      clock.Advance(1s);
      OsdSays(fenced);
      core->Tick();
      while (core->names().CommitPrepared()) {
      }
    }
  }
  std::map<uint64_t, uint64_t> epochs;
};

TEST_F(FileLeaseTest, TheOnlyWriterMayBufferAndAllReadersMayRemember) {
  const auto made = Ask<wire::EntryReply>(wire::MDS_CREATE, New(kRoot, "f", 0644));
  EXPECT_TRUE(made.has_file_lease());
  EXPECT_FALSE(made.file_lease().write()) << "opened for reading";
  const uint64_t f = made.attr().inode();
  const wire::FileLease writing = Open(f, 2).file_lease();
  EXPECT_TRUE(writing.write());
  EXPECT_FALSE(writing.unseen());
  wire::CreateRequest both = New(kRoot, "mine", 0644);
  both.set_open_flags(2);
  EXPECT_TRUE(Ask<wire::EntryReply>(wire::MDS_CREATE, both).file_lease().unseen());
  session = 9;  // never said that it obeys recalls
  EXPECT_FALSE(Ask<wire::EntryReply>(wire::MDS_CREATE, New(kRoot, "g", 0644)).has_file_lease());
  session = kOther;
  EXPECT_TRUE(Stat(kRoot).has_file_lease()) << "who looks at a directory";
  EXPECT_FALSE(Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "f"))->answer.has_value());
}

TEST_F(FileLeaseTest, ALookWaitsForWhatIsBuffered) {
  const uint64_t f = CreateOpen(kRoot, "f");
  ASSERT_TRUE(Open(f, 2).file_lease().write());
  const auto look = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "f"));
  EXPECT_FALSE(Answered(look));
  const wire::WatchReply recall = Watch(7);
  ASSERT_EQ(recall.recalled_files_size(), 1);
  EXPECT_EQ(recall.recalled_files(0), f);
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, NewReport(f, 4096, Epoch()))));
  EXPECT_FALSE(Answered(look));
  Yield(7, f);
  ASSERT_TRUE(Answered(look));
  wire::EntryReply seen;
  ASSERT_TRUE(seen.ParseFromString(look->answer->body));
  EXPECT_EQ(seen.attr().size(), 4096u);
  EXPECT_EQ(Watch(7).recalled_files_size(), 0);
}

// The holder may have set mode or owner and not told yet.
TEST_F(FileLeaseTest, ARefusalWaitsForWhatIsHeld) {
  const uint64_t f = CreateOpen(kRoot, "f");
  wire::SetAttrRequest close = Change(f);
  close.set_mode(0600);
  Ask<wire::EntryReply>(wire::MDS_SETATTR, close);
  ASSERT_TRUE(Open(f, 2).file_lease().write());
  wire::OpenRequest request = NewOpen(f, 0);
  request.mutable_caller()->set_uid(1234);
  const auto open = Start(kOther, wire::MDS_OPEN, request);
  wire::AccessRequest may;
  may.set_inode(f);
  may.set_mask(4);
  may.mutable_caller()->set_uid(1234);
  const auto access = Start(kOther, wire::MDS_ACCESS, may);
  EXPECT_FALSE(Answered(open));
  EXPECT_FALSE(Answered(access));
  ASSERT_EQ(Watch(7).recalled_files_size(), 1);
  wire::WroteRequest told = NewReport(f, 0, Epoch());
  told.mutable_attributes()->set_mode(0644);
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, told)));
  EXPECT_FALSE(Answered(open));
  Yield(7, f);
  ASSERT_TRUE(Answered(open));
  EXPECT_EQ(open->answer->status.code(), ErrorCode::kOk);
  ASSERT_TRUE(Answered(access));
  EXPECT_EQ(access->answer->status.code(), ErrorCode::kOk);
}

TEST_F(FileLeaseTest, AReportWaitsUntilReadersHaveForgotten) {
  const uint64_t f = SharedFile();
  Pass(2s);
  session = kOther;
  EXPECT_TRUE(Stat(f).has_file_lease());
  const auto wrote = Start(7, wire::MDS_WROTE, NewReport(f, 10, Epoch()));
  EXPECT_FALSE(Answered(wrote));
  Yield(kOther, f);
  EXPECT_TRUE(Answered(wrote));
}

// By the owner that came with a name a kernel judges who may chmod.
TEST_F(FileLeaseTest, NewOwnersWaitUntilNamesAreForgotten) {
  const uint64_t first = Mkdir(kRoot, "first");
  const uint64_t second = Mkdir(kRoot, "second");
  const uint64_t f = Touch(first, "f");
  wire::LinkRequest link;
  link.set_inode(f);
  link.set_new_parent(second);
  link.set_new_name("g");
  Ask<wire::EntryReply>(wire::MDS_LINK, link);
  session = kOther;
  EXPECT_TRUE(Stat(first).has_file_lease());
  EXPECT_TRUE(Stat(second).has_file_lease());
  wire::SetAttrRequest request = Change(f);
  request.set_mode(0600);
  EXPECT_TRUE(Answered(Start(7, wire::MDS_SETATTR, request))) << "nobody judges by its mode";
  request.set_gid(5);
  const auto chown = Start(7, wire::MDS_SETATTR, request);
  EXPECT_FALSE(Answered(chown));
  Yield(kOther, first);
  EXPECT_FALSE(Answered(chown)) << "it has two names";
  Yield(kOther, second);
  EXPECT_TRUE(Answered(chown));
  Pass(1s);
  session = kOther;
  EXPECT_TRUE(Stat(first).has_file_lease());
  EXPECT_TRUE(Answered(Start(7, wire::MDS_SETATTR, request))) << "the owner is who it was";
}

// While the file rests a reader remembers nothing, but its kernel drops what is mapped.
TEST_F(FileLeaseTest, EachChangeIsToldAndWaitsUntilItHasBeenHeard) {
  const uint64_t f = SharedFile();
  session = kOther;
  EXPECT_FALSE(Stat(f).has_file_lease());
  const auto first = Start(7, wire::MDS_WROTE, NewReport(f, 10, Epoch()));
  EXPECT_FALSE(Answered(first));
  const wire::WatchReply told = Watch(kOther);
  ASSERT_EQ(told.recalled_files_size(), 1);
  // One that comes meanwhile may not be covered by what is done about the first.
  const auto second = Start(7, wire::MDS_WROTE, NewReport(f, 20, Epoch()));
  wire::YieldRequest obeyed;
  obeyed.set_seq(told.file_lease_seq());
  obeyed.set_epoch(epochs[kOther]);
  obeyed.add_inodes(f);
  session = kOther;
  EXPECT_EQ(Code(wire::MDS_YIELD, obeyed), ErrorCode::kOk);
  Stat(f);  // what it learns now is newer than the first, which does not wait anew
  core->names().CommitPrepared();
  EXPECT_TRUE(Answered(first));
  EXPECT_FALSE(Answered(second));
  Yield(kOther, f);
  EXPECT_TRUE(Answered(second));
}

TEST_F(FileLeaseTest, WhoDoesNotHearIsWaitedForOnce) {
  const uint64_t f = SharedFile();
  const auto first = Start(7, wire::MDS_WROTE, NewReport(f, 10, Epoch()));
  EXPECT_FALSE(Answered(first));
  Pass(3s);
  EXPECT_TRUE(Answered(first));
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, NewReport(f, 20, Epoch()))));
}

TEST_F(FileLeaseTest, WhoIsAloneAgainBuffersAgain) {
  const uint64_t f = CreateOpen(kRoot, "f");
  const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  Yield(7, f);
  ASSERT_TRUE(Answered(open));
  const auto wrote = Start(7, wire::MDS_WROTE, NewReport(f, 1, Epoch()));
  Yield(kOther, f);
  ASSERT_TRUE(Answered(wrote));
  wire::EntryReply shared;
  ASSERT_TRUE(shared.ParseFromString(wrote->answer->body));
  EXPECT_FALSE(shared.file_lease().write());
  session = kOther;
  EXPECT_EQ(Release(f), ErrorCode::kOk);
  Pass(2s);
  session = 7;
  EXPECT_TRUE(
      Ask<wire::EntryReply>(wire::MDS_WROTE, NewReport(f, 2, Epoch())).file_lease().write());
}

TEST_F(FileLeaseTest, TheTimeMovesWithEveryWriteThatOthersMaySee) {
  const uint64_t f = CreateOpen(kRoot, "f");
  const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  Yield(7, f);
  ASSERT_TRUE(Answered(open));
  wire::WroteRequest report = NewReport(f, 1, Epoch());
  report.set_mtime_ns(1'000'000'000'000);
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {  // by a clock that stands still
    const auto wrote = Start(7, wire::MDS_WROTE, report);
    if (!Answered(wrote)) Yield(kOther, f);
    ASSERT_TRUE(Answered(wrote));
    wire::EntryReply reply;
    ASSERT_TRUE(reply.ParseFromString(wrote->answer->body));
    EXPECT_GT(reply.attr().mtime_ns(), last);
    last = reply.attr().mtime_ns();
  }
}

TEST_F(FileLeaseTest, ASilentReaderIsWaitedForForTheTermOnly) {
  const uint64_t f = Touch(kRoot, "f");
  Open(f, 0);
  Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  const auto wrote = Start(kOther, wire::MDS_WROTE, NewReport(f, 10, Epoch()));
  EXPECT_FALSE(Answered(wrote));
  Pass(3s);
  EXPECT_TRUE(Answered(wrote));
}

TEST_F(FileLeaseTest, ASilentWriterIsFencedBeforeOthersGoOn) {
  const uint64_t f = CreateOpen(kRoot, "f");
  const uint64_t before = Epoch();
  Watch(7);
  const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  Pass(5s);
  EXPECT_TRUE(core->keeper().map()->fences.empty()) << "it may be slow only";
  Pass(2s);
  ASSERT_EQ(core->keeper().map()->fences.count(7), 1u);
  const uint64_t fence = core->keeper().map()->fences.at(7).value;
  EXPECT_FALSE(Answered(open)) << "the OSD may still have something of it";
  session = 7;
  wire::OpenSessionRequest again;
  again.set_leases(true);
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, again), ErrorCode::kBusy);
  Pass(1s, fence);
  EXPECT_TRUE(Answered(open));
  EXPECT_EQ(Start(7, wire::MDS_WROTE, NewReport(f, 1 << 20, before))->answer->status.code(),
            ErrorCode::kStaleEpoch)
      << "kStale is said of files that are gone, which nobody misses";
  wire::OpenRequest late = NewOpen(f, 2);
  late.set_epoch(before);
  EXPECT_EQ(Start(7, wire::MDS_OPEN, late)->answer->status.code(), ErrorCode::kStaleEpoch);
  wire::CreateRequest made = New(kRoot, "made", 0644);
  made.set_epoch(before);
  for (const uint32_t method : {wire::MDS_CREATE, wire::MDS_TMPFILE}) {
    EXPECT_EQ(Start(7, method, made)->answer->status.code(), ErrorCode::kStaleEpoch);
  }
  late.set_epoch(fence);
  EXPECT_EQ(Start(7, wire::MDS_OPEN, late)->answer->status.code(), ErrorCode::kOk);
  session = kOther;
  EXPECT_EQ(Stat(f).attr().size(), 0u);
  session = 7;
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, again), ErrorCode::kOk);
}

TEST_F(FileLeaseTest, WhoWaitsForAnEvictionFindsWhatWasLeftBehindTheEndCutOff) {
  const uint64_t f = CreateOpen(kRoot, "f");
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, NewReport(f, 5000, Epoch()))));
  const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  Pass(7s);
  EXPECT_FALSE(Answered(open));
  EXPECT_TRUE(osds.orders.empty());
  Pass(1s, core->keeper().map()->fences.at(7).value);
  EXPECT_TRUE(Answered(open));
  ASSERT_FALSE(osds.orders.empty());
  EXPECT_EQ(osds.orders[0].kind, ObjectOrder::Kind::kTruncate);
  EXPECT_EQ(osds.orders[0].size, 5000u);
}

// Of the others too: what it writes may be under way to objects that are removed with the session.
TEST_F(FileLeaseTest, WhoseSessionEndsIsFencedIfItMayHaveWritten) {
  const uint64_t f = Touch(kRoot, "f");
  Open(f, 0);
  session = kOther;
  EXPECT_FALSE(Open(f, 2).file_lease().write());
  Pass(40s);
  EXPECT_EQ(core->keeper().map()->fences.count(kOther), 1u);
  EXPECT_EQ(core->keeper().map()->fences.count(7), 0u) << "it only reads";
}

TEST_F(FileLeaseTest, WhatASessionThatEndsWaitsForIsDroppedAndNobodyIsEvictedForIt) {
  const uint64_t f = CreateOpen(kRoot, "f");
  auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 0));
  Pass(2s);
  const auto weak = std::weak_ptr(open);
  session = kOther;
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  ASSERT_FALSE(Answered(open)) << "it waits for the writer's lease";
  open.reset();
  EXPECT_TRUE(weak.expired());
  Pass(10s);
  EXPECT_TRUE(core->keeper().map()->fences.empty()) << "nobody waits any more";
  EXPECT_EQ(core->names().SessionsWithOpenFiles(), std::vector<uint64_t>{7});
}

TEST_F(FileLeaseTest, AWriterThatIsHeardIsWaitedFor) {
  const uint64_t f = CreateOpen(kRoot, "f");
  const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  for (int i = 0; i < 20; ++i) {
    Watch(7);
    Watch(kOther);
    Pass(1s);
  }
  EXPECT_FALSE(Answered(open));
  EXPECT_TRUE(core->keeper().map()->fences.empty());
  Yield(7, f);
  EXPECT_TRUE(Answered(open));
}

// Nobody waits for it, but who only looks now and then would else never hear of it.
TEST_F(FileLeaseTest, WhoRemembersAFileHearsThatSomebodyHasReadIt) {
  const uint64_t f = Touch(kRoot, "f");
  Pass(1s);
  for (const uint64_t who : {uint64_t{7}, kOther}) {
    session = who;
    ASSERT_TRUE(Stat(f).has_file_lease());
  }
  wire::AccessedRequest read;
  read.add_reads()->set_inode(f);
  EXPECT_EQ(Code(wire::MDS_ACCESSED, read), ErrorCode::kOk) << "at once";
  EXPECT_EQ(Watch(kOther).recalled_files_size(), 0);
  ASSERT_EQ(Watch(7).recalled_files_size(), 1);
  Yield(7, f);
  const wire::EntryReply now = Stat(f);
  EXPECT_TRUE(now.has_file_lease());
  EXPECT_GT(now.attr().atime_ns(), now.attr().mtime_ns());
  Pass(1s);
  session = kOther;
  EXPECT_EQ(Code(wire::MDS_ACCESSED, read), ErrorCode::kOk);
  EXPECT_EQ(Watch(7).recalled_files_size(), 0) << "relatime: it moves once";
}

TEST_F(FileLeaseTest, AfterARestartLooksWaitForReportsOfTheHolders) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Restart();
  Begin();
  const auto look = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "f"));
  EXPECT_FALSE(Answered(look));
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, NewReport(f, 4096, Epoch()))));
  Pass(3s);
  ASSERT_TRUE(Answered(look));
  wire::EntryReply seen;
  ASSERT_TRUE(seen.ParseFromString(look->answer->body));
  EXPECT_EQ(seen.attr().size(), 4096u);
}

// What it buffered would else overwrite what others write meanwhile.
TEST_F(FileLeaseTest, AfterARestartAMissingWriterIsFencedBeforeOthersSeeItsFiles) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Touch(kRoot, "nobodys");
  session = kOther;
  const uint64_t mine = CreateOpen(kRoot, "mine");
  Restart();
  session = kOther;
  OpenSession({mine});
  const auto look = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "f"));
  const auto open = Start(kOther, wire::MDS_OPEN, NewOpen(f, 2));
  const auto unlink = Start(kOther, wire::MDS_UNLINK, Name(kRoot, "f"));
  const auto nobodys = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "nobodys"));
  const auto own = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "mine"));
  EXPECT_FALSE(Answered(nobodys)) << "holders get the time to report";
  Watch(kOther);
  Pass(3s);
  EXPECT_TRUE(Answered(nobodys));
  EXPECT_TRUE(Answered(own));
  EXPECT_FALSE(Answered(look));
  Watch(kOther);
  Pass(2s);
  EXPECT_TRUE(core->keeper().map()->fences.empty()) << "it may still come back";
  Pass(2s);
  ASSERT_EQ(core->keeper().map()->fences.count(7), 1u) << "without waiting for the grace to end";
  EXPECT_FALSE(Answered(look)) << "the OSD may still have something of it";
  EXPECT_FALSE(Answered(open));
  EXPECT_FALSE(Answered(unlink));
  Pass(1s, core->keeper().map()->fences.at(7).value);
  EXPECT_TRUE(Answered(look));
  EXPECT_TRUE(Answered(open));
  EXPECT_TRUE(Answered(unlink));
}

TEST_F(FileLeaseTest, AWriterThatComesBackAfterARestartFlushesBeforeOthersSeeItsFiles) {
  const uint64_t f = CreateOpen(kRoot, "f");
  const uint64_t closed = CreateOpen(kRoot, "closed");
  EXPECT_EQ(Release(closed), ErrorCode::kOk);
  Restart();
  session = kOther;
  OpenSession();
  Pass(2s);
  const auto look = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "f"));
  const auto other = Start(kOther, wire::MDS_LOOKUP, Name(kRoot, "closed"));
  EXPECT_FALSE(Answered(other));
  session = 7;
  OpenSession({f});
  Pass(3s);
  EXPECT_TRUE(Answered(other)) << "it had closed that before";
  EXPECT_FALSE(Answered(look));
  const wire::WatchReply recall = Watch(7);
  ASSERT_EQ(recall.recalled_files_size(), 1);
  EXPECT_EQ(recall.recalled_files(0), f);
  const auto wrote = Start(7, wire::MDS_WROTE, NewReport(f, 4096, Epoch()));
  ASSERT_TRUE(Answered(wrote));
  wire::EntryReply reply;
  ASSERT_TRUE(reply.ParseFromString(wrote->answer->body));
  EXPECT_FALSE(reply.has_file_lease()) << "not while others wait";
  EXPECT_FALSE(Answered(look));
  Yield(7, f);
  ASSERT_TRUE(Answered(look));
  wire::EntryReply seen;
  ASSERT_TRUE(seen.ParseFromString(look->answer->body));
  EXPECT_EQ(seen.attr().size(), 4096u);
}

// A silent one that others do not wait for has its grace.
TEST_F(FileLeaseTest, AfterARestartNobodyIsFencedEarlyForFilesThatNobodyWants) {
  CreateOpen(kRoot, "f");
  Restart();
  session = kOther;
  OpenSession();
  Pass(14s);
  EXPECT_TRUE(core->keeper().map()->fences.empty());
}

// How much space the file takes is known when the OSDs have answered.
TEST_F(FileLeaseTest, WhileAFileIsCutOffNobodyElseMayRememberIt) {
  session = 7;
  const uint64_t f = Touch(kRoot, "f");
  wire::WroteRequest wrote = NewReport(f, 4 << 20, Epoch());
  wrote.mutable_space()->set_wrote_bytes(1 << 20);
  Ask<wire::EntryReply>(wire::MDS_WROTE, wrote);
  wire::SetAttrRequest cut = Change(f);
  cut.set_size(2 << 20);
  osds.hold = true;
  osds.frees = {0, 1 << 20};
  const auto call = Start(7, wire::MDS_SETATTR, cut);
  session = kOther;
  EXPECT_FALSE(Stat(f).has_file_lease());
  osds.Release();
  EXPECT_TRUE(Finish(call).status.ok());
  EXPECT_TRUE(Stat(f).has_file_lease());
  EXPECT_EQ(Stat(f).attr().blocks(), 0u);
}

// Prepared twice it would find nothing any more of what the session leaves behind. Method: what it
// has open of an orphan that stays, and is charged no more then, is in others' leases.
TEST_F(FileLeaseTest, TheEndOfASessionWaitsForNobodysLease) {
  Pass(1s);
  session = 7;
  const uint64_t orphan = Touch(kRoot, "orphan");
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, NewReport(orphan, 4096, Epoch()))));
  Open(orphan, 0);
  const uint64_t f = CreateOpen(kRoot, "f");
  EXPECT_TRUE(Answered(Start(7, wire::MDS_WROTE, NewReport(f, 5000, Epoch()))));
  EXPECT_TRUE(Answered(Start(kOther, wire::MDS_GETATTR, At(orphan))));
  const auto unlink = Start(7, wire::MDS_UNLINK, Name(kRoot, "orphan"));
  Yield(kOther, orphan);
  EXPECT_TRUE(Answered(unlink));
  Pass(2s);  // the rest of its leases is over
  session = kOther;
  ASSERT_TRUE(Stat(orphan).has_file_lease());
  core->names().DropSession(7, false);
  EXPECT_TRUE(core->names().CommitPrepared()) << "at once";
  osds.orders.clear();
  Ask<wire::EntryReply>(wire::MDS_OPEN, NewOpen(f, 2));
  ASSERT_FALSE(osds.orders.empty()) << "what 7 may have left behind the end of the file";
  EXPECT_EQ(osds.orders[0].size, 5000u);
}

}  // namespace
}  // namespace weir::mds
