// Goal: a large file is purged step by step, each step a request of its own; a step that fails is
// tried again where it failed.
#include <fcntl.h>

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class PurgeTest : public MdsFixture {
 protected:
  void SetUp() override {
    MdsFixture::SetUp();
    clock.Advance(20s);  // nobody reclaims anything any more
    core->Tick();
    core->names().CommitPrepared();
  }
  void Remove(const std::string& name) {
    Touch(kRoot, name);
    osds.orders.clear();
    ASSERT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, name)), ErrorCode::kOk);
  }
  // First index and number of each step.
  std::vector<std::pair<uint64_t, uint32_t>> Asked() const {
    std::vector<std::pair<uint64_t, uint32_t>> steps;
    for (const ObjectOrder& order : osds.orders) {
      EXPECT_EQ(order.kind, ObjectOrder::Kind::kDeleteInode);
      EXPECT_EQ(order.charged_to, kSystemPurge);
      steps.emplace_back(order.index, order.objects_max);
    }
    return steps;
  }
};

using Steps = std::vector<std::pair<uint64_t, uint32_t>>;

TEST_F(PurgeTest, ASmallFileIsOneStepAndALargeOneMany) {
  Remove("small");
  EXPECT_EQ(Asked(), (Steps{{0, 1}}));
  osds.left = {1, 17, 33};
  Remove("large");
  EXPECT_EQ(Asked(), (Steps{{0, 1}, {1, 16}, {17, 16}, {33, 16}}));
  EXPECT_EQ(core->objects().pending_purges(), 0u);
}

// Goal: OSDs are spared of files that nobody can have sent them anything of, and of no others.
// Method: a session says that it never did (`blank`) after all that speaks against it.
TEST_F(PurgeTest, OsdsHearNothingOfAFileThatNobodyWroteTo) {
  constexpr uint64_t kMaker = 11, kOther = 12;
  const auto open = [this](uint64_t by, uint64_t inode, uint32_t flags) {
    session = by;
    wire::OpenRequest request;
    request.set_inode(inode);
    request.set_flags(flags);
    ASSERT_EQ(Code(wire::MDS_OPEN, request), ErrorCode::kOk);
    ASSERT_EQ(Release(inode), ErrorCode::kOk);
    clock.Advance(Lingering::kGrace);  // it stays for nobody who was told of it
  };
  const auto steps = [&](bool blank, const std::function<void(uint64_t)>& happens) {
    session = kMaker;
    wire::CreateRequest create = New(kRoot, "f", 0644);
    create.set_open_flags(O_WRONLY);
    const uint64_t inode = Ask<wire::EntryReply>(wire::MDS_CREATE, create).attr().inode();
    EXPECT_EQ(Release(inode), ErrorCode::kOk);
    happens(inode);
    session = kMaker;
    wire::NameRequest remove = Name(kRoot, "f");
    remove.set_keep(true);
    EXPECT_EQ(Ask<wire::TouchedReply>(wire::MDS_UNLINK, remove).kept(), inode);
    osds.orders.clear();
    wire::ReleaseRequest release;
    release.add_kept(inode);
    if (blank) release.add_blank(inode);
    EXPECT_EQ(Code(wire::MDS_RELEASE, release), ErrorCode::kOk);
    EXPECT_EQ(Code(wire::MDS_GETATTR, At(inode)), ErrorCode::kStale);
    return osds.orders.size();
  };
  const auto nothing = [](uint64_t) {};
  EXPECT_EQ(steps(true, nothing), 0u);
  EXPECT_EQ(steps(false, nothing), 1u) << "an older mount says nothing";
  EXPECT_EQ(steps(true, [&](uint64_t inode) { open(kMaker, inode, O_WRONLY); }), 0u);
  EXPECT_EQ(steps(true, [&](uint64_t inode) { open(kOther, inode, O_WRONLY); }), 1u);
  EXPECT_EQ(steps(true,
                  [&](uint64_t inode) {
                    open(kOther, inode, O_RDWR);
                    open(kMaker, inode, O_WRONLY);  // the file names the last
                  }),
            1u);
  EXPECT_EQ(steps(true,
                  [&](uint64_t inode) {
                    wire::WroteRequest wrote;
                    wrote.set_inode(inode);
                    wrote.set_size_at_least(1);
                    (void)Ask<wire::EntryReply>(wire::MDS_WROTE, wrote);
                  }),
            1u)
      << "it says so itself";
}

TEST_F(PurgeTest, AStepThatFailedIsTriedAgain) {
  osds.left = {1, 17};
  osds.answer = Status(ErrorCode::kUnreachable, "gone");
  Remove("large");
  ASSERT_EQ(osds.orders.size(), 3u);
  EXPECT_EQ(osds.orders[0].op.session, 0u) << "joined with others, which have one number together";
  EXPECT_NE(osds.orders[1].op, osds.orders[2].op);
  EXPECT_GT(osds.orders[2].floors.session, osds.orders[1].op.number);
  const replication::OpId failed = osds.orders[2].op;
  EXPECT_EQ(core->objects().pending_purges(), 1u);
  osds.answer = Status::Ok();
  osds.orders.clear();
  clock.Advance(1s);
  core->Tick();
  EXPECT_EQ(Asked(), (Steps{{17, 16}}));
  EXPECT_EQ(osds.orders[0].op, failed) << "it may have been done";
  EXPECT_EQ(core->objects().pending_purges(), 0u);
}

// Goal: an MDS that nobody uses sleeps: purges cost it something while there are any. Watched for
// less than a session lasts, whose end is an operation too.
TEST_F(PurgeTest, WhenAllIsPurgedNothingIsDoneForIt) {
  osds.hold = true;
  Remove("file");
  EXPECT_EQ(core->objects().pending_purges(), 1u);
  osds.Release();
  EXPECT_EQ(core->objects().pending_purges(), 0u);
  EXPECT_TRUE(core->names().AnyWait()) << "its end joins the next batch";
  const auto pass = [this](int ticks) {
    for (int i = 0; i < ticks; ++i) {
      clock.Advance(100ms);
      core->Tick();
      if (core->names().commit_wanted()) core->names().CommitPrepared();
    }
  };
  pass(60);  // what directories count is committed with it, or 5 s later
  const uint64_t before = core->names().committed_operations();
  osds.orders.clear();
  pass(200);
  EXPECT_FALSE(core->names().AnyWait());
  EXPECT_EQ(core->names().committed_operations(), before);
  EXPECT_TRUE(osds.orders.empty());
}

// Goal: `df` shows at once what a removal frees, and neither more nor less while it is deleted.
TEST_F(PurgeTest, WhatIsStillToBeDeletedIsFree) {
  const uint64_t all = uint64_t{1} << 30;  // of the one OSD
  const uint64_t size = 40 << 20;
  const auto uses = [&](uint64_t used_bytes) {
    wire::WatchRequest watch;
    watch.set_osd_id(0);
    watch.set_have_epoch(core->keeper().map()->epoch.value);
    watch.set_used_bytes(used_bytes);
    Send(wire::MDS_WATCH, watch);
  };
  const auto free = [&] {
    return Ask<wire::StatfsReply>(wire::MDS_STATFS, wire::Empty()).free_bytes();
  };
  wire::WroteRequest wrote;
  wrote.set_inode(Touch(kRoot, "file"));
  wrote.set_size_at_least(size);
  wrote.mutable_space()->set_wrote_bytes(size);
  (void)Ask<wire::EntryReply>(wire::MDS_WROTE, wrote);
  uses(size);
  EXPECT_EQ(free(), all - size);

  osds.hold = true;
  ASSERT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "file")), ErrorCode::kOk);
  EXPECT_EQ(free(), all);
  Restart();
  osds.held.erase(osds.held.begin());  // of the process that has ended
  uses(size);
  EXPECT_EQ(free(), all) << "it goes on with it";
  osds.Release();
  uses(0);
  EXPECT_EQ(free(), all);
  EXPECT_EQ(core->objects().bytes_to_free(), 0u);
}

TEST_F(PurgeTest, AStepThatFreesLeavesLessToFree) {
  const uint64_t all = uint64_t{1} << 30;
  wire::WroteRequest wrote;
  wrote.set_inode(Touch(kRoot, "file"));
  wrote.set_size_at_least(40 << 20);
  wrote.mutable_space()->set_wrote_bytes(40 << 20);
  (void)Ask<wire::EntryReply>(wire::MDS_WROTE, wrote);
  wire::WatchRequest watch;
  watch.set_osd_id(0);
  watch.set_have_epoch(core->keeper().map()->epoch.value);
  watch.set_used_bytes(40 << 20);
  Send(wire::MDS_WATCH, watch);

  osds.left = {1, 17};
  osds.frees = {0, 30 << 20};
  osds.hold = true;  // the last step
  ASSERT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "file")), ErrorCode::kOk);
  EXPECT_EQ(core->objects().bytes_to_free(), 10u << 20);
  const auto free = [&] {
    return Ask<wire::StatfsReply>(wire::MDS_STATFS, wire::Empty()).free_bytes();
  };
  EXPECT_EQ(free(), all) << "the OSD has not said yet that it uses less";
  osds.frees = {10 << 20};
  osds.Release();
  EXPECT_EQ(core->objects().bytes_to_free(), 0u);
  EXPECT_EQ(free(), all);
}

TEST_F(PurgeTest, ATruncationKeepsItsNumberUntilItIsAnswered) {
  const uint64_t file = Touch(kRoot, "file");
  wire::SetAttrRequest request;
  request.set_inode(file);
  request.set_size(10 << 20);
  (void)Ask<wire::EntryReply>(wire::MDS_SETATTR, request);
  osds.orders.clear();
  osds.answer = Status(ErrorCode::kTimedOut, "slow");
  request.set_size(1000);
  request.set_known_size(10 << 20);
  const auto call = Send(wire::MDS_SETATTR, request);
  core->names().CommitPrepared();
  ASSERT_EQ(osds.orders.size(), 2u) << "a cut and a deletion";
  const auto first = osds.orders;
  EXPECT_EQ(first[0].kind, ObjectOrder::Kind::kTruncate);
  EXPECT_TRUE(first[0].slot.has_value());
  EXPECT_EQ(first[0].chain_version, 1u);
  EXPECT_FALSE(first[1].slot.has_value()) << "of an inode's objects in many slots";
  EXPECT_NE(first[0].op, first[1].op);
  osds.answer = Status::Ok();
  osds.orders.clear();
  clock.Advance(1s);
  core->Tick();
  ASSERT_EQ(osds.orders.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(osds.orders[i].op, first[i].op);
    EXPECT_EQ(osds.orders[i].floors.session, first[i].op.number) << "those before it are answered";
  }
}

}  // namespace
}  // namespace weir::mds
