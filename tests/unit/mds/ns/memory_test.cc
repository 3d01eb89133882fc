// Goal: an operation whose names are not in memory keeps nobody waiting, changes nothing before
// they are, and then does what it would have done at once. Method: the test loads what is missing.
// The other fixtures' tests run over the same cold store, where it is loaded in between.
#include <thread>

#include "mds/ns/store_loader.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class MemoryTest : public MdsFixture {
 protected:
  void SetUp() override {
    on_missing = [] {};
    cached_keys = 0;
    LogOptions quiet;
    quiet.level = LogLevel::kOff;
    ASSERT_TRUE(InitLogging(quiet).ok());
    Start();
    Loaded(wire::MDS_REGISTER_OSD, Osd());
  }
  static wire::RegisterOsdRequest Osd() {
    wire::RegisterOsdRequest request;
    request.set_osd_uuid("disk-a");
    request.set_endpoint("inproc://disk-a");
    request.set_capacity_bytes(uint64_t{1} << 30);
    request.set_token_rate(100 << 20);
    return request;
  }
  void LoadAll() {
    while (core->names().LoadMissing() || core->names().CommitPrepared()) {
    }
  }
  Answer Loaded(uint32_t method, const google::protobuf::Message& request, uint64_t id = 0) {
    auto call = Send(method, request, id);
    LoadAll();
    return call->answer.value_or(Answer{Status(ErrorCode::kTimedOut), {}});
  }
  static uint64_t InodeOf(const Answer& answer) {
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    wire::EntryReply reply;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply.attr().inode();
  }
  uint64_t Make(uint64_t parent, const std::string& name, uint32_t mode) {
    return InodeOf(Loaded(wire::MDS_MKNOD, New(parent, name, mode)));
  }
};

TEST_F(MemoryTest, AColdLookDoesNotHoldUpAWarmOne) {
  Make(kRoot, "warm", S_IFREG | 0644);
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0755);
  const uint64_t cold_file = Make(directory, "cold", S_IFREG | 0644);
  Restart();
  clock.Advance(std::chrono::seconds(3));  // leases of before are over
  Loaded(wire::MDS_LOOKUP, Name(kRoot, "warm"));

  const uint64_t reads = cold.reads();
  auto late = Send(wire::MDS_LOOKUP, Name(directory, "cold"));
  auto soon = Send(wire::MDS_LOOKUP, Name(kRoot, "warm"));
  EXPECT_FALSE(late->answer.has_value());
  ASSERT_TRUE(soon->answer.has_value());
  EXPECT_TRUE(soon->answer->status.ok()) << soon->answer->status;
  EXPECT_EQ(cold.reads(), reads) << "somebody waited for the disk under the lock";
  LoadAll();
  ASSERT_TRUE(late->answer.has_value());
  EXPECT_EQ(InodeOf(*late->answer), cold_file);
}

TEST_F(MemoryTest, NothingIsReadFromTheDiskByWhoeverAsks) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0755);
  for (int i = 0; i < 20; ++i) Make(directory, std::to_string(i), S_IFREG | 0644);
  const auto expect_no_reads = [this](uint32_t method, const google::protobuf::Message& request) {
    cold.Forget();
    const uint64_t reads = cold.reads();
    auto call = Send(method, request);
    EXPECT_EQ(cold.reads(), reads) << "method " << method;
    EXPECT_FALSE(call->answer.has_value()) << "method " << method;
    LoadAll();
    ASSERT_TRUE(call->answer.has_value()) << "method " << method;
    EXPECT_TRUE(call->answer->status.ok()) << "method " << method << ": " << call->answer->status;
  };
  wire::ReaddirRequest list;
  *list.mutable_caller() = Caller();
  list.set_inode(directory);
  list.set_plus(true);
  expect_no_reads(wire::MDS_READDIR, list);
  expect_no_reads(wire::MDS_GETATTR, At(directory));
  expect_no_reads(wire::MDS_MKNOD, New(directory, "new", S_IFREG | 0644));
  expect_no_reads(wire::MDS_RENAME, Move(directory, "0", kRoot, "moved"));
  expect_no_reads(wire::MDS_LINK, NewLink(directory + 2, kRoot, "link"));
  expect_no_reads(wire::MDS_UNLINK, Name(directory, "1"));
  expect_no_reads(wire::MDS_SETXATTR, Xattr(directory, "user.x", "y"));
  expect_no_reads(wire::MDS_OPEN_SESSION, wire::OpenSessionRequest());
}

TEST_F(MemoryTest, AListingFindsAllThatIsMissingAtOnce) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0755);
  for (int i = 0; i < 100; ++i) Make(directory, std::to_string(i), S_IFREG | 0644);
  cold.Forget();
  const uint64_t before = core->names().put_aside();
  wire::ReaddirRequest list;
  *list.mutable_caller() = Caller();
  list.set_inode(directory);
  list.set_plus(true);
  const Answer answer = Loaded(wire::MDS_READDIR, list);
  wire::ReaddirReply reply;
  ASSERT_TRUE(reply.ParseFromString(answer.body));
  EXPECT_EQ(reply.entries_size(), 100);
  // The directory, its names, what they name; the state record and the root come besides.
  EXPECT_LE(core->names().put_aside() - before, 6u);
}

// The accident: the kept answer could not be read at once, so the request was done again.
TEST_F(MemoryTest, ARepeatedRequestIsAnsweredFromWhatIsKept) {
  constexpr uint64_t kId = 1000;
  wire::CreateRequest request = New(kRoot, "once", 0644);
  request.set_exclusive(true);
  const uint64_t made = InodeOf(Loaded(wire::MDS_CREATE, request, kId));
  Restart();
  EXPECT_EQ(InodeOf(Loaded(wire::MDS_CREATE, request, kId)), made);
}

TEST_F(MemoryTest, ARepeatedRequestWhoseAnswerCannotBeReadFails) {
  constexpr uint64_t kId = 1000;
  const wire::NameRequest request = Name(kRoot, "gone");
  Make(kRoot, "gone", S_IFREG | 0644);
  EXPECT_TRUE(Loaded(wire::MDS_UNLINK, request, kId).status.ok());
  cold.Forget();
  cold.FailWith(Status(ErrorCode::kIo, "planted"));
  EXPECT_EQ(Loaded(wire::MDS_UNLINK, request, kId).status.code(), ErrorCode::kIo);
  cold.FailWith(Status::Ok());
  EXPECT_TRUE(Loaded(wire::MDS_UNLINK, request, kId).status.ok());
}

TEST_F(MemoryTest, ARequestThatIsRepeatedWhileItIsAsideIsDoneOnce) {
  constexpr uint64_t kId = 1000;
  cold.Forget();
  const wire::CreateRequest request = New(kRoot, "once", S_IFDIR | 0755);
  auto first = Send(wire::MDS_MKNOD, request, kId);
  auto second = Send(wire::MDS_MKNOD, request, kId);
  EXPECT_FALSE(first->answer.has_value());
  LoadAll();
  ASSERT_TRUE(first->answer.has_value());
  ASSERT_TRUE(second->answer.has_value());
  EXPECT_EQ(InodeOf(*first->answer), InodeOf(*second->answer));
}

TEST_F(MemoryTest, ARenameThatIsAsideFindsWhatOthersMadeOfItsNamesMeanwhile) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0755);
  Make(directory, "file", S_IFREG | 0644);
  cold.Forget();
  auto move = Send(wire::MDS_RENAME, Move(directory, "file", kRoot, "moved"));
  auto remove = Send(wire::MDS_UNLINK, Name(directory, "file"));
  LoadAll();
  ASSERT_TRUE(move->answer.has_value());
  ASSERT_TRUE(remove->answer.has_value());
  const bool moved = move->answer->status.ok();
  EXPECT_NE(moved, remove->answer->status.ok()) << "one of them came first";
  const Answer look = Loaded(wire::MDS_LOOKUP, Name(kRoot, "moved"));
  EXPECT_EQ(look.status.ok(), moved);
}

TEST_F(MemoryTest, WhatIsOpenedForASessionThatHasEndedIsClosedAgain) {
  wire::CreateRequest create = New(kRoot, "open", 0644);
  create.set_open_flags(2);
  wire::OpenRequest open;
  open.set_inode(InodeOf(Loaded(wire::MDS_CREATE, create)));
  cold.Forget();
  session = 8;
  auto aside = Send(wire::MDS_OPEN, open);
  auto closed = Send(wire::MDS_CLOSE_SESSION, wire::Empty());
  EXPECT_FALSE(aside->answer.has_value());
  LoadAll();
  ASSERT_TRUE(aside->answer.has_value() && closed->answer.has_value());
  ASSERT_TRUE(aside->answer->status.ok()) << aside->answer->status;
  EXPECT_EQ(core->names().SessionsWithOpenFiles().size(), 2u);
  for (int i = 0; i < 40; ++i) {
    clock.Advance(std::chrono::seconds(1));
    session = 7;
    Send(wire::MDS_STATFS, wire::Empty());  // a sign of life
    core->Tick();
    LoadAll();
  }
  EXPECT_EQ(core->names().SessionsWithOpenFiles(), std::vector<uint64_t>{7});
}

// The accident: the space of what it had removed was free again after the next restart only.
TEST_F(MemoryTest, WhatIsKeptForASessionThatHasEndedGoes) {
  Make(kRoot, "file", S_IFREG | 0644);
  cold.Forget();
  session = 8;
  wire::NameRequest removal = Name(kRoot, "file");
  removal.set_keep(true);
  const auto aside = Send(wire::MDS_UNLINK, removal);
  const auto closed = Send(wire::MDS_CLOSE_SESSION, wire::Empty());
  EXPECT_FALSE(aside->answer.has_value());
  LoadAll();
  ASSERT_TRUE(aside->answer.has_value() && closed->answer.has_value());
  ASSERT_TRUE(aside->answer->status.ok()) << aside->answer->status;
  osds.orders.clear();
  for (int i = 0; i < 40; ++i) {
    clock.Advance(std::chrono::seconds(1));
    core->Tick();
    LoadAll();
  }
  EXPECT_FALSE(osds.orders.empty());
}

TEST_F(MemoryTest, AReleaseThatIsAsideHasClosedNothing) {
  wire::CreateRequest create = New(kRoot, "open", 0644);
  create.set_open_flags(2);
  const uint64_t file = InodeOf(Loaded(wire::MDS_CREATE, create));
  ASSERT_TRUE(Loaded(wire::MDS_UNLINK, Name(kRoot, "open")).status.ok());
  cold.Forget();
  osds.orders.clear();
  wire::ReleaseRequest release;
  release.add_inodes(file);
  auto call = Send(wire::MDS_RELEASE, release);
  EXPECT_FALSE(call->answer.has_value());
  EXPECT_EQ(core->names().SessionsWithOpenFiles(), std::vector<uint64_t>{session});
  EXPECT_TRUE(osds.orders.empty());
  LoadAll();
  EXPECT_TRUE(call->answer.has_value());
  EXPECT_TRUE(core->names().SessionsWithOpenFiles().empty());
}

TEST_F(MemoryTest, AnOperationEndsThoughMemoryForgetsAtOnce) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0755);
  const uint64_t file = Make(directory, "file", S_IFREG | 0644);
  cold.Forget();
  cold.set_forgets(true);
  EXPECT_EQ(InodeOf(Loaded(wire::MDS_LOOKUP, Name(directory, "file"))), file);
  wire::ReaddirRequest list;
  *list.mutable_caller() = Caller();
  list.set_inode(directory);
  EXPECT_TRUE(Loaded(wire::MDS_READDIR, list).status.ok());
}

TEST_F(MemoryTest, WhatCannotBeReadFailsAndHoldsUpNobody) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0755);
  cold.Forget();
  cold.FailWith(Status(ErrorCode::kIo, "planted"));
  EXPECT_EQ(Loaded(wire::MDS_GETATTR, At(directory)).status.code(), ErrorCode::kIo);
  cold.FailWith(Status::Ok());
  EXPECT_TRUE(Loaded(wire::MDS_GETATTR, At(directory)).status.ok());
}

TEST_F(MemoryTest, TheThreadsOfTheLoaderAnswerWhoeverAsks) {
  uint64_t inodes[8];
  for (uint64_t& inode : inodes) {
    inode = Make(kRoot, std::to_string(&inode - inodes), S_IFREG | 0644);
  }
  core.reset();
  cold.Forget();
  MdsOptions options;
  options.background = false;
  auto opened = MdsCore::Open(cold, clock, osds, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  core = *std::move(opened);
  clock.Advance(std::chrono::seconds(3));
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const uint64_t inode : inodes) {
        core->names().Execute(
            {},
            [inode](Operation& op) -> Result<std::string> {
              WEIR_RETURN_IF_ERROR(op.Load(inode).status());
              return std::string();
            },
            [&answered](const Status& status, const std::string&) {
              EXPECT_TRUE(status.ok()) << status;
              ++answered;
              answered.notify_all();
            });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int seen = answered; seen < 32; seen = answered) answered.wait(seen);
  core.reset();
}

TEST(StoreLoaderTest, ALargeJobDoesNotHoldUpASmallOne) {
  MemKvStore store;
  std::vector<uint64_t> ended;
  StoreLoader loader(store, 0, [&ended](const std::vector<StoreLoader::Job>& jobs) {
    for (const StoreLoader::Job& job : jobs) ended.push_back(job.id);
  });
  StoreLoader::Job large{1, {}};
  for (const char* key : {"a", "b", "c"}) large.items.push_back({{key, {}}, 0});
  loader.Submit(std::move(large));
  StoreLoader::Job small{2, {}};
  small.items.push_back({{"d", {}}, 0});
  loader.Submit(std::move(small));
  EXPECT_TRUE(loader.RunHere());
  EXPECT_EQ(ended, (std::vector<uint64_t>{2, 1}));
  EXPECT_FALSE(loader.RunHere());
}

}  // namespace
}  // namespace weir::mds
