// Goal: a session that takes answers before they are durable gets them as soon as their place is
// certain; nobody else hears of what a crash could take, and a crash leaves a prefix.
#include <fcntl.h>

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

// Runs something while a batch is on its way to the medium.
class Midway final : public KvStore {
 public:
  explicit Midway(KvStore& below) : below_(below) {}
  Result<std::string> Get(std::string_view key) override { return below_.Get(key); }
  Status Apply(const WriteBatch& batch, Durability durability) override {
    if (const auto run = std::exchange(meanwhile, nullptr)) run();
    return below_.Apply(batch, durability);
  }
  bool HasRoom() override { return below_.HasRoom(); }
  std::unique_ptr<Iterator> NewIterator() override { return below_.NewIterator(); }

  std::function<void()> meanwhile;  // the next one

 private:
  KvStore& below_;
};

class OrderedTest : public MdsFixture {
 protected:
  static constexpr uint64_t kOurs = 77;
  static constexpr uint64_t kTheirs = 78;

  void SetUp() override {
    MdsFixture::SetUp();
    OpenAs(kTheirs, 1000);
    OpenAs(kOurs, 1000);
    ours_ = Mkdir(kRoot, "ours");
    theirs_ = Mkdir(kRoot, "theirs");
    CommitAll();
  }
  KvStore& Store() override { return store_; }

  void OpenAs(uint64_t who, uint32_t within_ms, bool repeats = false) {
    session = who;
    wire::OpenSessionRequest request;
    request.set_ordered_within_ms(within_ms);
    request.set_keeps(repeats);
    request.set_repeats(repeats);
    Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, request);
  }
  void CommitAll() {
    while (core->names().CommitPrepared()) {
    }
  }
  // Loaded, so that it is answered at once or waits for a commit.
  std::shared_ptr<TestCall> SendAs(uint64_t who, uint32_t method,
                                   const google::protobuf::Message& request) {
    session = who;
    auto call = Send(method, request);
    while (core->names().LoadMissing()) {
    }
    return call;
  }
  static wire::EntryReply Entry(const std::shared_ptr<TestCall>& call) {
    wire::EntryReply reply;
    EXPECT_TRUE(call->answer.has_value() && call->answer->status.ok());
    if (!call->answer.has_value()) return {};
    EXPECT_TRUE(reply.ParseFromString(call->answer->body));
    return reply;
  }
  static wire::Ordered Tail(const std::shared_ptr<TestCall>& call) {
    wire::OrderedAnswer reply;
    EXPECT_TRUE(call->answer.has_value() && call->answer->status.ok());
    if (!call->answer.has_value()) return {};
    EXPECT_TRUE(reply.ParseFromString(call->answer->body));
    return reply.ordered();
  }
  // Directories of which the store says that their parents do not count all of them.
  std::set<uint64_t> UntoldInStore() {
    std::set<uint64_t> untold;
    const auto it = mem.NewIterator();
    for (it->Seek("u"); it->Valid() && it->key()[0] == 'u'; it->Next()) {
      untold.insert(ReadBigEndian(it->key(), kFirstNumber));
    }
    return untold;
  }
  std::shared_ptr<TestCall> Make(uint64_t who, uint64_t parent, const std::string& name) {
    return SendAs(who, wire::MDS_MKNOD, New(parent, name, S_IFREG | 0644));
  }

  // After a restart.
  void MakeAgain(uint64_t who, uint64_t parent, const std::string& name,
                 const std::shared_ptr<TestCall>& made) {
    wire::ReplayRequest replay;
    replay.set_method(wire::MDS_MKNOD);
    replay.set_body(New(parent, name, S_IFREG | 0644).SerializeAsString());
    replay.set_inode(Entry(made).attr().inode());
    replay.set_stamp_ns(Tail(made).stamp_ns());
    replay.set_request_id(1000);
    const auto again = SendAs(who, wire::MDS_REPLAY, replay);
    CommitAll();
    ASSERT_TRUE(again->answer.has_value());
    EXPECT_TRUE(again->answer->status.ok()) << again->answer->status;
    EXPECT_EQ(Entry(again).attr().inode(), replay.inode());
  }

  uint64_t ours_ = 0;
  uint64_t theirs_ = 0;
  Midway store_{mem};
};

TEST_F(OrderedTest, WhoDidItIsAnsweredBeforeTheCommitAndOthersAreNot) {
  const auto made = Make(kOurs, ours_, "new");
  ASSERT_TRUE(made->answer.has_value());
  EXPECT_EQ(Entry(made).attr().mode(), S_IFREG | 0644u);
  EXPECT_EQ(Tail(made).order(), Tail(Make(kOurs, ours_, "next")).order() - 1);
  const auto own_look = SendAs(kOurs, wire::MDS_LOOKUP, Name(ours_, "new"));
  EXPECT_TRUE(own_look->answer.has_value());
  const auto look = SendAs(kTheirs, wire::MDS_LOOKUP, Name(ours_, "new"));
  const auto refused = Make(kTheirs, ours_, "new");
  const auto list = SendAs(kTheirs, wire::MDS_GETATTR, At(ours_));
  EXPECT_FALSE(look->answer.has_value());
  EXPECT_FALSE(refused->answer.has_value());
  EXPECT_FALSE(list->answer.has_value());
  CommitAll();
  EXPECT_EQ(Entry(look).attr().inode(), Entry(made).attr().inode());
  EXPECT_EQ(refused->answer->status.code(), ErrorCode::kExists);
}

// Prevents: what was answered early is lost although its mount is there to repeat it, as an MDS
// that begins anew does not know that it has to wait for that session.
TEST_F(OrderedTest, NobodyIsAnsweredEarlyBeforeHisSessionIsOnTheMedium) {
  constexpr uint64_t kNew = 79;
  session = kNew;
  wire::OpenSessionRequest request;
  request.set_ordered_within_ms(1000);
  request.set_keeps(true);
  const auto open = Send(wire::MDS_OPEN_SESSION, request);
  const auto made = Make(kNew, ours_, "new");
  EXPECT_FALSE(open->answer.has_value());
  EXPECT_FALSE(made->answer.has_value());
  CommitAll();
  EXPECT_TRUE(open->answer.has_value());
  EXPECT_TRUE(made->answer.has_value());
  EXPECT_TRUE(Make(kNew, ours_, "next")->answer.has_value());
}

// Prevents: whoever wants to hear of what is on its way to the medium waits for the batch behind it
// as well, which others fill meanwhile.
TEST_F(OrderedTest, WhatIsOnItsWayIsWaitedForAndNothingElse) {
  const auto made = Make(kOurs, ours_, "new");
  std::shared_ptr<TestCall> look, commit, next, next_look;
  store_.meanwhile = [&] {
    look = SendAs(kTheirs, wire::MDS_LOOKUP, Name(ours_, "new"));
    commit = SendAs(kOurs, wire::MDS_COMMIT, wire::Empty());
    next = Make(kOurs, ours_, "next");
    next_look = SendAs(kTheirs, wire::MDS_LOOKUP, Name(ours_, "next"));
    EXPECT_FALSE(look->answer.has_value());
    EXPECT_FALSE(commit->answer.has_value());
  };
  ASSERT_TRUE(core->names().CommitPrepared());
  EXPECT_EQ(Entry(look).attr().inode(), Entry(made).attr().inode());
  EXPECT_EQ(Tail(commit).durable(), Tail(made).order());
  EXPECT_FALSE(next_look->answer.has_value());
  CommitAll();
  EXPECT_EQ(Entry(next_look).attr().inode(), Entry(next).attr().inode());
}

TEST_F(OrderedTest, AFailureOnItsWayFailsWhoWaitsForIt) {
  (void)Make(kOurs, ours_, "new");
  std::shared_ptr<TestCall> look;
  store_.meanwhile = [&] {
    look = SendAs(kTheirs, wire::MDS_LOOKUP, Name(ours_, "new"));
    mem.FailWith({ErrorCode::kIo, "gone"});
  };
  core->names().CommitPrepared();
  ASSERT_TRUE(look->answer.has_value());
  EXPECT_FALSE(look->answer->status.ok());
}

TEST_F(OrderedTest, WhoDoesNotTakeThemWaits) {
  OpenAs(kTheirs, 0);
  const auto made = Make(kTheirs, theirs_, "new");
  EXPECT_FALSE(made->answer.has_value());
  CommitAll();
  EXPECT_FALSE(Entry(made).has_ordered());
}

TEST_F(OrderedTest, TwoSessionsInDirectoriesOfTheirOwnDoNotWaitForEachOther) {
  const auto made = Make(kOurs, ours_, "new");
  const auto other = Make(kTheirs, theirs_, "new");
  ASSERT_TRUE(other->answer.has_value());
  EXPECT_NE(Entry(made).attr().inode(), Entry(other).attr().inode());
}

// Goal: who makes names beside another session does not wait for those of the other; who would see
// what they have moved does, also when he has moved it since.
TEST_F(OrderedTest, NamesInOneDirectoryDoNotWaitForEachOther) {
  EXPECT_TRUE(Entry(Make(kOurs, ours_, "new")).has_directory());
  const auto other = Make(kTheirs, ours_, "other");
  ASSERT_TRUE(other->answer.has_value());
  EXPECT_FALSE(Entry(other).has_directory()) << "its times and counts build on the first";
  EXPECT_FALSE(Entry(Make(kOurs, ours_, "third")).has_directory());
  const auto absent = SendAs(kTheirs, wire::MDS_LOOKUP, Name(ours_, "absent"));
  ASSERT_TRUE(absent->answer.has_value());
  EXPECT_EQ(absent->answer->status.code(), ErrorCode::kNotFound);
  const auto moved = SendAs(kTheirs, wire::MDS_RENAME, Move(ours_, "other", ours_, "moved"));
  const auto linked = SendAs(kOurs, wire::MDS_UNLINK, Name(ours_, "third"));
  const auto directory = SendAs(kTheirs, wire::MDS_MKNOD, New(ours_, "dir", S_IFDIR | 0755));
  const auto gone = SendAs(kTheirs, wire::MDS_RMDIR, Name(ours_, "dir"));
  for (const auto& call : {moved, linked, directory, gone}) {
    EXPECT_TRUE(call->answer.has_value() && call->answer->status.ok());
  }

  const auto attributes = SendAs(kOurs, wire::MDS_GETATTR, At(ours_));
  const auto theirs = SendAs(kTheirs, wire::MDS_GETATTR, At(ours_));
  wire::ReaddirRequest listing;
  *listing.mutable_caller() = Caller();
  listing.set_inode(ours_);
  const auto list = SendAs(kOurs, wire::MDS_READDIR, listing);
  const auto removal = SendAs(kTheirs, wire::MDS_RMDIR, Name(kRoot, "ours"));
  const auto again = Make(kOurs, ours_, "moved");
  const auto taken = SendAs(kOurs, wire::MDS_UNLINK, Name(ours_, "moved"));
  for (const auto& call : {attributes, theirs, list, removal, again, taken}) {
    EXPECT_FALSE(call->answer.has_value());
  }
  CommitAll();
  EXPECT_EQ(removal->answer->status.code(), ErrorCode::kNotEmpty);
  EXPECT_EQ(again->answer->status.code(), ErrorCode::kExists);
  EXPECT_TRUE(taken->answer->status.ok());
  EXPECT_TRUE(Entry(Make(kTheirs, ours_, "last")).has_directory()) << "all else is durable";
}

TEST_F(OrderedTest, WhatDecidesAboutNamesIsWaitedFor) {
  wire::SetAttrRequest rights;
  *rights.mutable_caller() = Caller();
  rights.set_inode(ours_);
  rights.set_mode(0777);
  SendAs(kTheirs, wire::MDS_SETATTR, rights);
  Make(kTheirs, ours_, "theirs");
  EXPECT_FALSE(Make(kOurs, ours_, "new")->answer.has_value());
  EXPECT_FALSE(SendAs(kOurs, wire::MDS_LOOKUP, Name(ours_, "absent"))->answer.has_value());
  CommitAll();
  Make(kTheirs, ours_, "more");
  EXPECT_TRUE(Make(kOurs, ours_, "other")->answer.has_value());
  SendAs(kTheirs, wire::MDS_RENAME, Move(kRoot, "ours", kRoot, "renamed"));
  EXPECT_FALSE(Make(kOurs, ours_, "another")->answer.has_value()) << "its path, maybe its class";
}

TEST_F(OrderedTest, WhoIsRefusedForNamesOfOthersWaitsForThem) {
  ASSERT_EQ(Code(wire::MDS_SETXATTR, Xattr(ours_, "user.weir.quota.files", "2")), ErrorCode::kOk);
  CommitAll();
  Make(kTheirs, ours_, "1");
  Make(kTheirs, ours_, "2");
  const auto refused = Make(kOurs, ours_, "3");
  EXPECT_FALSE(refused->answer.has_value());
  CommitAll();
  EXPECT_EQ(refused->answer->status.code(), ErrorCode::kQuota);
}

// Goal: what a quota has room for is not room that a crash of somebody else takes away again.
TEST_F(OrderedTest, WhoIsAdmittedByAQuotaWaitsForWhatOthersHaveRemoved) {
  ASSERT_EQ(Code(wire::MDS_SETXATTR, Xattr(ours_, "user.weir.quota.files", "1")), ErrorCode::kOk);
  Make(kOurs, ours_, "only");
  CommitAll();
  EXPECT_TRUE(SendAs(kOurs, wire::MDS_UNLINK, Name(ours_, "only"))->answer.has_value());
  const auto made = SendAs(kTheirs, wire::MDS_MKNOD, New(ours_, "dir", S_IFDIR | 0755));
  EXPECT_FALSE(made->answer.has_value());
  CommitAll();
  EXPECT_TRUE(made->answer.has_value() && made->answer->status.ok());
}

// Goal: whoever compares the times of a directory sees that it was changed, though its changes are
// repeated in another order than they were made in.
TEST_F(OrderedTest, TimesOfADirectoryDoNotGoBackWithWhatIsRepeated) {
  for (const uint64_t who : {kOurs, kTheirs}) OpenAs(who, 1000, true);
  CommitAll();
  const auto first = Make(kOurs, ours_, "first");
  clock.Advance(std::chrono::milliseconds(100));
  const auto second = Make(kTheirs, ours_, "second");
  ASSERT_GT(Tail(second).stamp_ns(), Tail(first).stamp_ns());
  Restart();
  for (const uint64_t who : {kOurs, kTheirs}) OpenAs(who, 1000, true);
  MakeAgain(kTheirs, ours_, "second", second);
  MakeAgain(kOurs, ours_, "first", first);
  for (const uint64_t who : {kOurs, kTheirs}) SendAs(who, wire::MDS_REPLAYED, wire::Empty());
  const auto attributes = SendAs(kOurs, wire::MDS_GETATTR, At(ours_));
  CommitAll();
  EXPECT_EQ(Entry(attributes).attr().mtime_ns(), Tail(second).stamp_ns());
  EXPECT_EQ(Entry(attributes).attr().ctime_ns(), Tail(second).stamp_ns());
  EXPECT_EQ(List(ours_), (std::vector<std::string>{"second", "first"}));
}

TEST_F(OrderedTest, CommitEndsWhenAllIsDurable) {
  const auto idle = SendAs(kOurs, wire::MDS_COMMIT, wire::Empty());
  EXPECT_TRUE(idle->answer.has_value()) << "nothing to wait for";
  const auto made = Make(kOurs, ours_, "new");
  const auto commit = SendAs(kOurs, wire::MDS_COMMIT, wire::Empty());
  EXPECT_FALSE(commit->answer.has_value());
  CommitAll();
  EXPECT_GE(Tail(commit).durable(), Tail(made).order());
  EXPECT_LT(Tail(made).durable(), Tail(made).order());
}

TEST_F(OrderedTest, ARequestThatWaitedTellsWhatIsDurable) {
  const auto made = Make(kOurs, ours_, "new");
  wire::WroteRequest wrote;
  wrote.set_inode(Entry(made).attr().inode());
  wrote.set_size_at_least(10);
  wrote.set_commit(true);
  const auto reported = SendAs(kOurs, wire::MDS_WROTE, wrote);
  EXPECT_FALSE(reported->answer.has_value());
  CommitAll();
  EXPECT_GE(Tail(reported).durable(), Tail(made).order());
  wrote.set_commit(false);
  EXPECT_FALSE(SendAs(kOurs, wire::MDS_WROTE, wrote)->answer.has_value()) << "others may look";
}

TEST_F(OrderedTest, ACrashTakesAnEndOfIt) {
  Make(kOurs, ours_, "first");
  CommitAll();
  const uint64_t lost = Entry(Make(kOurs, ours_, "second")).attr().inode();
  Make(kOurs, ours_, "third");
  Restart();
  OpenAs(kOurs, 1000);
  EXPECT_EQ(List(ours_), (std::vector<std::string>{"first"}));
  EXPECT_EQ(Entry(Make(kOurs, ours_, "anew")).attr().inode(), lost);
}

TEST_F(OrderedTest, ItIsDurableWithinItsTimeAlthoughNobodyWaits) {
  Make(kOurs, ours_, "old");
  CommitAll();
  core->Tick();  // the directories above count it
  CommitAll();
  const uint64_t before = core->names().commits();
  EXPECT_TRUE(
      SendAs(kOurs, wire::MDS_RENAME, Move(ours_, "old", ours_, "new"))->answer.has_value());
  clock.Advance(std::chrono::milliseconds(800));
  core->Tick();
  EXPECT_FALSE(core->names().commit_wanted());
  clock.Advance(std::chrono::milliseconds(100));
  core->Tick();
  EXPECT_TRUE(core->names().commit_wanted());
  CommitAll();
  EXPECT_GT(core->names().commits(), before);
}

TEST_F(OrderedTest, ManyAreCommittedBeforeTheirTime) {
  for (int i = 0; i < 255; ++i) Make(kOurs, ours_, "f" + std::to_string(i));
  EXPECT_FALSE(core->names().commit_wanted());
  Make(kOurs, ours_, "last");
  EXPECT_TRUE(core->names().commit_wanted());
}

TEST_F(OrderedTest, WhatIsKeptInMemoryIsBounded) {
  int answered = 0;
  for (int i = 0; i < 5000; ++i) {
    answered += Make(kOurs, ours_, "f" + std::to_string(i))->answer.has_value() ? 1 : 0;
  }
  EXPECT_EQ(answered, 4096);
  CommitAll();
  EXPECT_EQ(Get(ours_, "weir.rstats"), "bytes=0 files=5000 directories=0 entries=5000");
}

TEST_F(OrderedTest, WhoOpensToWriteWaitsAsARestartMustKnow) {
  const uint64_t file = Entry(Make(kOurs, ours_, "file")).attr().inode();
  CommitAll();
  wire::OpenRequest open;
  *open.mutable_caller() = Caller();
  open.set_inode(file);
  open.set_flags(O_RDWR);
  const auto opened = SendAs(kOurs, wire::MDS_OPEN, open);
  EXPECT_FALSE(opened->answer.has_value());
  CommitAll();
  EXPECT_TRUE(opened->answer.has_value());
  wire::CreateRequest create = New(ours_, "file", 0644);
  create.set_open_flags(O_RDWR);
  session = kTheirs;
  const auto created = SendAs(kTheirs, wire::MDS_CREATE, create);
  EXPECT_FALSE(created->answer.has_value()) << "it opened what was there";
}

// The accident: what lies below directories was counted upwards ten times a second, in a commit of
// its own, for which whoever worked in these directories waited.
TEST_F(OrderedTest, UsageGoesWithTheBatchThatIsOpenAndKeepsNobodyWaiting) {
  OpenAs(kTheirs, 0);
  Make(kOurs, ours_, "first");
  core->Tick();
  EXPECT_FALSE(core->names().commit_wanted());
  EXPECT_TRUE(Make(kOurs, ours_, "second")->answer.has_value());
  EXPECT_TRUE(SendAs(kTheirs, wire::MDS_GETATTR, At(kRoot))->answer.has_value())
      << "of what is counted there no attribute tells";
  core->Tick();
  CommitAll();
  EXPECT_TRUE(UntoldInStore().empty());
}

TEST_F(OrderedTest, UsageDoesNotPutOffWhatItGoesWith) {
  Make(kOurs, ours_, "file");
  core->Tick();
  clock.Advance(std::chrono::milliseconds(900));
  core->Tick();
  EXPECT_TRUE(core->names().commit_wanted());
}

TEST_F(OrderedTest, UsageAloneIsCommittedAfterAWhile) {
  Make(kOurs, ours_, "file");
  CommitAll();
  EXPECT_EQ(UntoldInStore(), std::set<uint64_t>{ours_});
  for (int ticks = 0; ticks < 50; ++ticks) {
    core->Tick();
    EXPECT_FALSE(core->names().commit_wanted()) << ticks;
    clock.Advance(std::chrono::milliseconds(100));
  }
  core->Tick();
  EXPECT_TRUE(core->names().commit_wanted());
  CommitAll();
  EXPECT_TRUE(UntoldInStore().empty());
}

TEST_F(OrderedTest, WhoIsToldWhatLiesBelowWaitsForWhatIsCountedQuietly) {
  Make(kOurs, ours_, "file");
  CommitAll();
  core->Tick();
  const auto usage = SendAs(kTheirs, wire::MDS_GETXATTR, Xattr(kRoot, "weir.rstats"));
  EXPECT_FALSE(usage->answer.has_value());
  EXPECT_TRUE(core->names().commit_wanted());
  CommitAll();
  wire::XattrReply reply;
  ASSERT_TRUE(usage->answer.has_value() && reply.ParseFromString(usage->answer->body));
  EXPECT_EQ(reply.value(), "bytes=0 files=1 directories=2 entries=3");
}

TEST_F(OrderedTest, WhoIsRefusedForWhatIsCountedQuietlyWaitsForThat) {
  session = kTheirs;
  const uint64_t inner = Mkdir(ours_, "inner");
  ASSERT_EQ(Code(wire::MDS_SETXATTR, Xattr(theirs_, "user.weir.quota.files", "2")), ErrorCode::kOk);
  CommitAll();
  Make(kOurs, inner, "file");
  CommitAll();
  core->Tick();  // `ours` counts it
  const auto moved = SendAs(kTheirs, wire::MDS_RENAME, Move(kRoot, "ours", theirs_, "ours"));
  EXPECT_FALSE(moved->answer.has_value());
  CommitAll();
  ASSERT_TRUE(moved->answer.has_value());
  EXPECT_EQ(moved->answer->status.code(), ErrorCode::kQuota);
}

TEST_F(OrderedTest, AttributesOfProgramsAreAnsweredEarly) {
  const auto set = SendAs(kOurs, wire::MDS_SETXATTR, Xattr(ours_, "user.mime", "text"));
  EXPECT_GT(Tail(set).order(), 0u);
  const auto own = SendAs(kOurs, wire::MDS_GETXATTR, Xattr(ours_, "user.mime"));
  const auto look = SendAs(kTheirs, wire::MDS_GETXATTR, Xattr(ours_, "user.mime"));
  EXPECT_TRUE(own->answer.has_value());
  EXPECT_FALSE(look->answer.has_value());
  CommitAll();
  EXPECT_TRUE(look->answer.has_value());
  const auto gone = SendAs(kOurs, wire::MDS_REMOVEXATTR, Xattr(ours_, "user.mime"));
  EXPECT_GT(Tail(gone).order(), Tail(set).order());
  Restart();
  OpenAs(kOurs, 1000);
  EXPECT_EQ(Get(ours_, "user.mime"), "text") << "the crash took the removal";
}

TEST_F(OrderedTest, AttributesThatDecideAboutOthersAreDurableFirst) {
  MakeClass("gold");
  const uint64_t file = Entry(Make(kOurs, ours_, "file")).attr().inode();
  CommitAll();
  const std::string rights("\2\0\0\0\1\0\7\0\0\0\0\0\4\0\5\0\0\0\0\0\x20\0\0\0\0\0\0\0", 28);
  const wire::XattrRequest decisive[] = {Xattr(ours_, "user.qos.class", "gold"),
                                         Xattr(ours_, "user.weir.quota.files", "100"),
                                         Xattr(ours_, "user.weir.layout.stripe_count", "1"),
                                         Xattr(file, "security.capability", "x"),
                                         Xattr(file, "security.selinux", "x"),
                                         Xattr(ours_, "system.posix_acl_access", rights),
                                         Xattr(file, "user.long", std::string(4097, 'x'))};
  for (const wire::XattrRequest& request : decisive) {
    const auto set = SendAs(kOurs, wire::MDS_SETXATTR, request);
    EXPECT_FALSE(set->answer.has_value()) << request.name();
    CommitAll();
    ASSERT_TRUE(set->answer.has_value()) << request.name();
    EXPECT_TRUE(set->answer->status.ok()) << set->answer->status;
  }
}

TEST_F(OrderedTest, AStoreThatLosesAnswersServesNobodyAnyMore) {
  Make(kOurs, ours_, "lost");
  mem.FailWith(Status(ErrorCode::kIo, "the disk is gone"));
  CommitAll();
  mem.FailWith(Status::Ok());
  const auto look = SendAs(kOurs, wire::MDS_LOOKUP, Name(ours_, "lost"));
  ASSERT_TRUE(look->answer.has_value());
  EXPECT_EQ(look->answer->status.code(), ErrorCode::kIo);
  EXPECT_NE(look->answer->status.message().find("restart"), std::string::npos);
  EXPECT_EQ(SendAs(kOurs, wire::MDS_COMMIT, wire::Empty())->answer->status.code(), ErrorCode::kIo);
}

TEST_F(OrderedTest, ACloseOfTheSessionMakesAllDurable) {
  Make(kOurs, ours_, "new");
  const auto closed = SendAs(kOurs, wire::MDS_CLOSE_SESSION, wire::Empty());
  EXPECT_FALSE(closed->answer.has_value());
  CommitAll();
  EXPECT_TRUE(closed->answer.has_value());
  Restart();
  session = kTheirs;
  EXPECT_EQ(List(ours_), (std::vector<std::string>{"new"}));
}

}  // namespace
}  // namespace weir::mds
