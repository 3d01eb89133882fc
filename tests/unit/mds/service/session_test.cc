// Sessions: open-but-unlinked files, who else has a file open, restarts, repeated requests,
// watching, parts of limits.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class SessionTest : public MdsFixture {
 protected:
  ErrorCode Open(uint64_t inode, uint32_t flags = 2) {
    wire::OpenRequest request;
    request.set_inode(inode);
    request.set_flags(flags);
    return Code(wire::MDS_OPEN, request);
  }
  void OpenSession(std::vector<uint64_t> reclaim = {}) {
    wire::OpenSessionRequest request;
    for (const uint64_t inode : reclaim) request.add_open_inodes(inode);
    Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  }
  size_t Purged() const {
    size_t count = 0;
    for (const ObjectOrder& order : osds.orders) {
      count += order.kind == ObjectOrder::Kind::kDeleteInode && order.charged_to == kSystemPurge;
    }
    return count;
  }
  // An OSD says that it lives and that nothing older is left of whoever was fenced.
  void OsdSays(uint64_t fenced) {
    const uint64_t asker = std::exchange(session, 1000);
    wire::WatchRequest request;
    request.set_osd_id(0);
    request.set_have_epoch(core->keeper().map()->epoch.value);
    request.set_fence_epoch(fenced);
    Send(wire::MDS_WATCH, request);
    session = asker;
  }
  void Pass(Duration time) {
    clock.Advance(time);
    core->Tick();
    core->names().CommitPrepared();
  }
};

TEST_F(SessionTest, AnUnlinkedFileLivesUntilTheLastSessionLetsGo) {
  Pass(20s);
  const uint64_t f = CreateOpen(kRoot, "f");
  session = 8;
  EXPECT_EQ(Open(f), ErrorCode::kOk);
  EXPECT_FALSE(Stat(f).sole_opener());
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  EXPECT_EQ(Stat(f).attr().nlink(), 0u);
  EXPECT_EQ(Release(f), ErrorCode::kOk);
  session = 7;
  EXPECT_TRUE(Stat(f).sole_opener());
  EXPECT_EQ(Purged(), 0u);
  EXPECT_EQ(Release(f), ErrorCode::kOk);
  EXPECT_EQ(Purged(), 0u);  // session 7 was told of it lately when its name went
  Pass(Lingering::kGrace);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(f)), ErrorCode::kStale);
  EXPECT_EQ(Purged(), 1u);
}

TEST_F(SessionTest, ASilentSessionLosesItsFilesAfterTheLease) {
  OpenSession();
  const uint64_t f = CreateOpen(kRoot, "f");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
  Pass(25s);
  EXPECT_EQ(Purged(), 0u);
  Pass(10s);
  EXPECT_EQ(Purged(), 1u);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(f)), ErrorCode::kStale);
  wire::WatchRequest watch;
  EXPECT_TRUE(Ask<wire::WatchReply>(wire::MDS_WATCH, watch).unknown_session());
}

TEST_F(SessionTest, AProcessThatGoesOnHasFilesOpenAsTheyWere) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Open(f, 0), ErrorCode::kOk);
  wire::OpenSessionRequest request;
  request.add_open_inodes(f);
  request.set_resumes(true);
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  EXPECT_FALSE(core->names().MayWrite(session));
  EXPECT_TRUE(Stat(f).sole_opener());
  OpenSession({f});  // of somebody of whom nothing is known
  EXPECT_TRUE(core->names().MayWrite(session));
}

TEST_F(SessionTest, AfterARestartOrphansWaitToBeReclaimed) {
  const uint64_t kept = CreateOpen(kRoot, "kept");
  const uint64_t lost = CreateOpen(kRoot, "lost");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "kept")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "lost")), ErrorCode::kOk);
  Restart();
  wire::WatchRequest watch;
  EXPECT_TRUE(Ask<wire::WatchReply>(wire::MDS_WATCH, watch).unknown_session());
  OpenSession({kept});
  Pass(10s);
  EXPECT_EQ(Purged(), 0u);
  Pass(6s);
  EXPECT_EQ(Purged(), 1u);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(lost)), ErrorCode::kStale);
  EXPECT_EQ(Stat(kept).attr().nlink(), 0u);
}

// OSDs may be told twice to delete the objects of an inode.
TEST_F(SessionTest, NumbersOfInodesAreNeverGivenTwice) {
  Pass(20s);
  uint64_t last = 0;
  for (int life = 0; life < 3; ++life) {
    for (int i = 0; i < 3; ++i) {
      const uint64_t inode = Touch(kRoot, "f");
      EXPECT_GT(inode, last);
      last = inode;
      EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "f")), ErrorCode::kOk);
    }
    Pass(20s);
    EXPECT_EQ(Code(wire::MDS_GETATTR, At(last)), ErrorCode::kStale);
    Restart();
    Pass(20s);
  }
}

// Only who never wrote can have nothing on its way when the grace ends.
TEST_F(SessionTest, WhoDoesNotComeBackAfterARestartIsFencedBeforeOrphansGo) {
  Touch(kRoot, "read");
  const uint64_t lost = CreateOpen(kRoot, "lost");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "lost")), ErrorCode::kOk);
  session = 8;
  EXPECT_EQ(Open(Ask<wire::EntryReply>(wire::MDS_LOOKUP, Name(kRoot, "read")).attr().inode(), 0),
            ErrorCode::kOk);
  session = 9;
  const uint64_t kept = CreateOpen(kRoot, "kept");
  EXPECT_EQ(Release(kept), ErrorCode::kOk);
  Restart();
  Restart();  // what it knows of writers outlives every restart
  OpenSession({});
  const auto pass = [&](int seconds, uint64_t fenced) {
    for (int i = 0; i < seconds; ++i) {
      OsdSays(fenced);
      Pass(1s);
    }
  };
  pass(14, 0);
  EXPECT_TRUE(core->keeper().map()->fences.empty()) << "it may still come back";
  pass(10, 0);
  const auto fences = core->keeper().map()->fences;
  EXPECT_EQ(fences.size(), 1u) << "8 only reads, 9 has come back";
  ASSERT_EQ(fences.count(7), 1u);
  EXPECT_EQ(Purged(), 0u) << "an OSD may still have something of it";
  session = 7;
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, wire::OpenSessionRequest()), ErrorCode::kBusy);
  pass(1, fences.at(7).value);
  EXPECT_EQ(Purged(), 1u);
  EXPECT_EQ(Code(wire::MDS_GETATTR, At(lost)), ErrorCode::kStale);
  session = 9;
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  core->names().CommitPrepared();
  Restart();
  pass(20, 0);
  EXPECT_EQ(core->keeper().map()->epoch, fences.at(7)) << "nobody is missing any more";
}

TEST_F(SessionTest, WhatADeadWriterLeftBehindTheEndIsCutOffBeforeTheFileGrows) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 5000);
  const uint64_t closed = CreateOpen(kRoot, "closed");
  EXPECT_EQ(Release(closed), ErrorCode::kOk);
  Pass(40s);
  session = 8;
  EXPECT_EQ(Open(f, 0), ErrorCode::kOk);
  EXPECT_EQ(Open(closed, 2), ErrorCode::kOk);
  EXPECT_TRUE(osds.orders.empty()) << "who reads sees nothing of it, who closed has told all";
  osds.hold = true;
  const auto open = [&] {
    wire::OpenRequest request;
    request.set_inode(f);
    request.set_flags(2);
    return Send(wire::MDS_OPEN, request);
  }();
  EXPECT_EQ(Finish(open).status.code(), ErrorCode::kTimedOut) << "until the OSDs have done it";
  osds.Release();
  EXPECT_EQ(Finish(open).status.code(), ErrorCode::kOk);
  const auto cuts = osds.orders.size();
  ASSERT_GT(cuts, 0u);
  EXPECT_EQ(osds.orders[0].kind, ObjectOrder::Kind::kTruncate);
  EXPECT_EQ(osds.orders[0].size, 5000u);
  session = 9;
  EXPECT_EQ(Open(f, 2), ErrorCode::kOk);
  EXPECT_EQ(osds.orders.size(), cuts) << "once";
}

// Or its sole opener would not be the sole one for ever after, and an orphan would never go.
TEST_F(SessionTest, WhoWaitsForATruncationAndIsRefusedHasNothingOpen) {
  const uint64_t f = CreateOpen(kRoot, "f", 0666);
  Grow(f, 5000);
  wire::SetAttrRequest cut = Change(f);
  cut.set_size(10);
  osds.hold = true;
  const auto cutting = Send(wire::MDS_SETATTR, cut);
  EXPECT_EQ(Finish(cutting).status.code(), ErrorCode::kTimedOut) << "until the OSDs have done it";
  session = 8;
  uid = 1000;
  wire::OpenRequest request;
  *request.mutable_caller() = Caller();
  request.set_inode(f);
  request.set_flags(2);
  const auto open = Send(wire::MDS_OPEN, request);
  EXPECT_EQ(Finish(open).status.code(), ErrorCode::kTimedOut) << "it waits, too";
  session = 7;
  uid = 0;
  EXPECT_TRUE(Stat(f).sole_opener()) << "who waits has not opened it";
  wire::SetAttrRequest mode = Change(f);
  mode.set_mode(0600);
  EXPECT_EQ(Code(wire::MDS_SETATTR, mode), ErrorCode::kOk);
  osds.Release();
  EXPECT_TRUE(Finish(cutting).status.ok());
  EXPECT_EQ(Finish(open).status.code(), ErrorCode::kAccess);
  EXPECT_TRUE(Stat(f).sole_opener());
}

// The mount and the MDS died together: the file tells who may have left something behind its end.
TEST_F(SessionTest, SoIsWhatAWriterLeftThatDidNotComeBackAfterARestart) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 5000);
  const uint64_t g = CreateOpen(kRoot, "g");
  Grow(g, 700);
  Restart();
  for (int i = 0; i < 20; ++i) {
    OsdSays(core->keeper().map()->epoch.value);
    Pass(1s);
  }
  ASSERT_EQ(core->keeper().map()->fences.count(7), 1u);
  Restart();  // who did not come back is known for ever
  session = 8;
  EXPECT_EQ(Open(f, 0), ErrorCode::kOk);
  EXPECT_TRUE(osds.orders.empty());
  EXPECT_EQ(Open(f, 2), ErrorCode::kOk);
  ASSERT_FALSE(osds.orders.empty());
  EXPECT_EQ(osds.orders[0].kind, ObjectOrder::Kind::kTruncate);
  EXPECT_EQ(osds.orders[0].size, 5000u);
  const auto cuts = osds.orders.size();
  session = 9;
  EXPECT_EQ(Open(f, 2), ErrorCode::kOk);
  EXPECT_EQ(osds.orders.size(), cuts) << "once";
  wire::SetAttrRequest longer = Change(g);
  longer.set_size(9000);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, longer).attr().size(), 9000u);
  ASSERT_GT(osds.orders.size(), cuts);
  EXPECT_EQ(osds.orders[cuts].size, 700u);
}

// By its path, which opens nothing.
TEST_F(SessionTest, ATruncationUpwardsCutsOffWhatADeadWriterLeft) {
  const uint64_t f = CreateOpen(kRoot, "f");
  Grow(f, 5000);
  Pass(40s);
  session = 8;
  wire::SetAttrRequest longer = Change(f);
  longer.set_size(9000);
  EXPECT_EQ(Ask<wire::EntryReply>(wire::MDS_SETATTR, longer).attr().size(), 9000u);
  ASSERT_FALSE(osds.orders.empty());
  EXPECT_EQ(osds.orders[0].size, 5000u) << "zeros from there on";
}

TEST_F(SessionTest, ARepeatedAdministrationCallGetsItsFirstAnswerAlsoAfterARestart) {
  const auto ask = [&](uint32_t method, const google::protobuf::Message& request, uint64_t id) {
    auto call = Send(method, request, id);
    Obey();
    return Finish(call);
  };
  wire::SetClassRequest create;
  create.set_name("gold");
  wire::PoolCreateRequest pool;
  pool.set_name("fast");
  pool.add_osds(0);
  wire::ClassNameRequest remove;
  remove.set_name("gold");
  for (const auto& [method, request, again] :
       {std::tuple<uint32_t, const google::protobuf::Message*, ErrorCode>(
            wire::MDS_CLASS_CREATE, &create, ErrorCode::kExists),
        {wire::MDS_POOL_CREATE, &pool, ErrorCode::kExists},
        {wire::MDS_CLASS_REMOVE, &remove, ErrorCode::kNotFound}}) {
    SCOPED_TRACE(method);
    const uint64_t id = 500 + method;
    const Answer first = ask(method, *request, id);
    ASSERT_TRUE(first.status.ok()) << first.status;
    Restart();
    const Epoch before = core->keeper().map()->epoch;
    const Answer repeated = ask(method, *request, id);
    EXPECT_TRUE(repeated.status.ok()) << repeated.status;
    EXPECT_EQ(repeated.body, first.body);
    EXPECT_EQ(core->keeper().map()->epoch, before);
    EXPECT_EQ(ask(method, *request, id + 100).status.code(), again);
  }
}

TEST_F(SessionTest, ARepeatedRequestGetsItsFirstAnswerAlsoAfterARestart) {
  wire::CreateRequest create = New(kRoot, "f", 0644);
  create.set_exclusive(true);
  create.set_open_flags(2);
  const Answer first = Try(wire::MDS_CREATE, create, 100);
  ASSERT_TRUE(first.status.ok());
  const Answer removed = Try(wire::MDS_UNLINK, Name(kRoot, "gone"), 101);
  EXPECT_EQ(removed.status.code(), ErrorCode::kNotFound);
  Restart();
  const Answer again = Try(wire::MDS_CREATE, create, 100);
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.body, first.body);
  session = 8;
  wire::EntryReply reply;
  ASSERT_TRUE(reply.ParseFromString(first.body));
  EXPECT_FALSE(Stat(reply.attr().inode()).sole_opener()) << "open again for session 7";
  EXPECT_EQ(Code(wire::MDS_CREATE, create), ErrorCode::kExists) << "another session's request";
}

TEST_F(SessionTest, AnswersAreForgottenOnceTheClientHasThem) {
  Touch(kRoot, "a");
  Touch(kRoot, "b");
  auto answers = [&] {
    size_t count = 0;
    const auto it = mem.NewIterator();
    for (it->Seek("a"); it->Valid() && it->key()[0] == 'a'; it->Next()) ++count;
    return count;
  };
  EXPECT_EQ(answers(), 2u);
  auto call = std::make_shared<TestCall>(wire::MDS_MKNOD, session, ++last_id,
                                         New(kRoot, "c", S_IFREG | 0644).SerializeAsString());
  call->AckedBelow(last_id);
  core->Handle(call);
  EXPECT_TRUE(Finish(call).status.ok());
  EXPECT_EQ(answers(), 1u);
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  core->names().CommitPrepared();
  EXPECT_EQ(answers(), 0u);
}

// Requests are told apart by connection, also after a restart; files are the session's.
TEST_F(SessionTest, ConnectionsOfASessionShareWhatIsOpenAndNotTheirRequests) {
  const uint64_t first = session;
  wire::CreateRequest create = New(kRoot, "f", 0644);
  create.set_exclusive(true);
  create.set_open_flags(2);
  const Answer made = Try(wire::MDS_CREATE, create, 100);
  ASSERT_TRUE(made.status.ok()) << made.status;
  session = net::OnConnection(first, 5);
  create.set_name("g");
  const Answer other = Try(wire::MDS_CREATE, create, 100);
  ASSERT_TRUE(other.status.ok()) << other.status;
  EXPECT_NE(other.body, made.body) << "another connection's request of that number";
  Restart();
  EXPECT_EQ(Try(wire::MDS_CREATE, create, 100).body, other.body);

  wire::EntryReply reply;
  ASSERT_TRUE(reply.ParseFromString(made.body));
  wire::OpenRequest open;
  *open.mutable_caller() = Caller();
  open.set_inode(reply.attr().inode());
  open.set_flags(2);
  EXPECT_EQ(Code(wire::MDS_OPEN, open), ErrorCode::kOk);
  EXPECT_TRUE(Stat(reply.attr().inode()).sole_opener()) << "it is the same mount";
}

TEST_F(SessionTest, AnswersAreForgottenByConnectionAndAllWithTheSession) {
  const uint64_t first = session;
  auto answers = [&] {
    size_t count = 0;
    const auto it = mem.NewIterator();
    for (it->Seek("a"); it->Valid() && it->key()[0] == 'a'; it->Next()) ++count;
    return count;
  };
  Touch(kRoot, "a");
  session = net::OnConnection(first, 3);
  auto call = std::make_shared<TestCall>(wire::MDS_MKNOD, session, ++last_id,
                                         New(kRoot, "b", S_IFREG | 0644).SerializeAsString());
  call->AckedBelow(last_id);
  core->Handle(call);
  EXPECT_TRUE(Finish(call).status.ok());
  EXPECT_EQ(answers(), 2u) << "of the first connection nothing was acknowledged";
  EXPECT_EQ(core->names().SessionsWithAnswers(), std::vector<uint64_t>{first});
  session = first;
  EXPECT_EQ(Code(wire::MDS_CLOSE_SESSION, wire::Empty()), ErrorCode::kOk);
  core->names().CommitPrepared();
  EXPECT_EQ(answers(), 0u);
}

TEST_F(SessionTest, WatchAnswersAtOnceWhenSomethingIsNewerAndElseWaits) {
  OpenSession();
  wire::WatchRequest watch;
  watch.set_wait_ms(1000);
  const auto now = Ask<wire::WatchReply>(wire::MDS_WATCH, watch);
  EXPECT_TRUE(now.has_map());
  watch.set_have_epoch(now.epoch());
  watch.set_have_tag_epoch(now.tag_epoch());
  const auto patient = Send(wire::MDS_WATCH, watch);
  EXPECT_FALSE(patient->answer.has_value());
  clock.Advance(1s);
  core->Tick();
  EXPECT_TRUE(patient->answer.has_value());
  const auto lucky = Send(wire::MDS_WATCH, watch);
  MakeClass("gold");
  ASSERT_TRUE(lucky->answer.has_value());
  wire::WatchReply reply;
  ASSERT_TRUE(reply.ParseFromString(lucky->answer->body));
  EXPECT_EQ(reply.map().classes_size(), 6);
}

// Goal: whoever is no mount takes nothing from those who are.
class LimitSessionTest : public SessionTest {
 protected:
  void SetUp() override {
    MdsFixture::SetUp();
    AddOsd("disk-b", 100 << 20);
    wire::SetClassRequest request;
    request.set_name("gold");
    request.set_limit_bytes_per_s(1 << 20);
    ASSERT_TRUE(Admin(wire::MDS_CLASS_CREATE, request).status.ok());
    Pass(5s);  // by now the divider has heard of all
  }
  // What it obeys, and that it could use all of the limit.
  static void Say(double part, wire::DivideLimitsRequest* request) {
    auto* report = request->add_reports();
    report->set_class_id(kFirstUserClass.value);
    report->set_part(static_cast<uint32_t>(part * 1e9));
    report->set_interval_ns(100'000'000);
    report->set_queued_bytes(10 << 20);
    report->set_limited_ns(100'000'000);
  }
  Answer Divide(const wire::DivideLimitsRequest& said) {
    wire::DivideLimitsRequest request = said;
    request.set_number(++number);
    return Try(wire::MDS_DIVIDE_LIMITS, request);
  }
  double PartOf(double obeyed) {
    wire::DivideLimitsRequest request;
    Say(obeyed, &request);
    wire::DivideLimitsReply reply;
    EXPECT_TRUE(reply.ParseFromString(Divide(request).body));
    EXPECT_EQ(reply.parts_size(), 1);
    return reply.parts_size() == 1 ? reply.parts(0).part() / 1e9 : 0;
  }
  uint64_t number = 0;
};

TEST_F(LimitSessionTest, LimitsAreDividedAmongOpenSessionsOnly) {
  session = 666;
  wire::DivideLimitsRequest request;
  Say(1, &request);
  EXPECT_EQ(Divide(request).status.code(), ErrorCode::kStale);
  session = 7;
  OpenSession();
  EXPECT_NEAR(PartOf(0), 1, 1e-6) << "of all, whatever somebody else says that he has";
  EXPECT_TRUE(Try(wire::MDS_CLOSE_SESSION, wire::Empty()).status.ok());
  EXPECT_EQ(Divide(request).status.code(), ErrorCode::kStale);
}

// Prevents: an embedded cluster lets its mount send one request a second for three seconds.
TEST_F(LimitSessionTest, AMountThatIsAloneHasAllFromTheStart) {
  Restart();
  OpenSession();
  EXPECT_EQ(PartOf(0), 0) << "others may have some from before the restart";
  EXPECT_TRUE(Try(wire::MDS_CLOSE_SESSION, wire::Empty()).status.ok());
  Restart();
  wire::OpenSessionRequest open;
  open.set_exclusive(true);
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, open);
  EXPECT_NEAR(PartOf(0), 1, 1e-6);
}

TEST_F(LimitSessionTest, WhatAMountAskedForAndHasNotBegunGoesWithItsSession) {
  wire::SetClassRequest limited;
  limited.set_name("gold");
  limited.set_limit_names_per_s(10);
  ASSERT_TRUE(Admin(wire::MDS_CLASS_SET, limited).status.ok());
  const auto queued = [this] {
    uint64_t sum = 0;
    const auto load = Ask<wire::ClassLoadReply>(wire::MDS_CLASS_LOAD, wire::Empty());
    for (const wire::ClassLoad& one : load.classes()) sum += one.queued();
    return sum;
  };
  wire::InodeRequest request = At(kRoot);
  request.mutable_caller()->set_class_id(kFirstUserClass.value);
  const auto flood = [&] {
    OpenSession();
    for (int i = 0; i < 20; ++i) Send(wire::MDS_GETATTR, request);
    EXPECT_GE(queued(), 15u);
  };
  flood();
  EXPECT_TRUE(Try(wire::MDS_CLOSE_SESSION, wire::Empty()).status.ok());
  EXPECT_EQ(queued(), 0u);
  Pass(1s);
  flood();
  Pass(31s);
  EXPECT_EQ(queued(), 0u) << "also when it is silent for its lease";
}

TEST_F(LimitSessionTest, ReportsWithoutNumberAreRefusedAndOfAClassTheFirstCounts) {
  OpenSession();
  wire::DivideLimitsRequest request;
  for (int i = 0; i < 3; ++i) Say(0, &request);
  wire::DivideLimitsReply reply;
  EXPECT_TRUE(reply.ParseFromString(Divide(request).body));
  EXPECT_EQ(reply.parts_size(), 1);
  for (int i = 0; i < LimitBook::kReportsMost; ++i) Say(0, &request);
  EXPECT_EQ(Divide(request).status.code(), ErrorCode::kInvalid);
}

TEST_F(SessionTest, MountsASubtree) {
  const uint64_t b = Mkdir(Mkdir(kRoot, "a"), "b");
  wire::OpenSessionRequest request;
  request.set_subtree("/a//b/");
  EXPECT_EQ(Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request).root_inode(), b);
  request.set_subtree("/a/c");
  EXPECT_EQ(Code(wire::MDS_OPEN_SESSION, request), ErrorCode::kNotFound);
}

TEST_F(SessionTest, RubbishIsAnsweredWithAnError) {
  auto call = std::make_shared<TestCall>(wire::MDS_LOOKUP, session, ++last_id, "\xff\xff\xff");
  core->Handle(call);
  EXPECT_EQ(Finish(call).status.code(), ErrorCode::kBadMessage);
  EXPECT_EQ(Code(9999, wire::Empty()), ErrorCode::kNotSupported);
}

}  // namespace
}  // namespace weir::mds
