// Goal: what a class's files hold is known to the byte, through growth, cuts, removal, tags and
// restarts, and never grows beyond the class's capacity by anybody who asks first.
#include "mds/ns/class_space.h"

#include <algorithm>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ClassSpaceTest : public MdsFixture {
 protected:
  void SetUp() override {
    MdsFixture::SetUp();
    gold_ = MakeClass("gold").id();
    dir_ = Mkdir(kRoot, "gold");
    ASSERT_EQ(Tag(dir_, "gold"), ErrorCode::kOk);
  }
  // Before, removed files are kept for whoever may still reclaim them.
  void EndGrace() {
    clock.Advance(std::chrono::seconds(20));
    core->Tick();
    core->names().CommitPrepared();
  }
  Answer SetCapacity(const std::string& name, uint64_t bytes) {
    wire::SetClassRequest request;
    request.set_name(name);
    request.set_capacity_bytes(bytes);
    return Admin(wire::MDS_CLASS_SET, request);
  }
  Answer TryGrow(uint64_t inode, uint64_t end, uint32_t class_id = 0) {
    wire::GrowRequest request;
    request.set_inode(inode);
    request.set_end(end);
    request.set_class_id(class_id);
    return Try(wire::MDS_GROW, request);
  }
  // How far the file may be written; 0: not so far.
  uint64_t Allowed(uint64_t inode, uint64_t end, uint32_t class_id = 0) {
    const Answer answer = TryGrow(inode, end, class_id);
    if (answer.status.code() == ErrorCode::kQuota) return 0;
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    wire::GrowReply reply;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply.end();
  }
  ErrorCode Cut(uint64_t inode, uint64_t size) {
    wire::SetAttrRequest request = Change(inode);
    request.set_size(size);
    return Code(wire::MDS_SETATTR, request);
  }
  uint64_t Held(uint32_t class_id) {
    const auto load = Ask<wire::ClassLoadReply>(wire::MDS_CLASS_LOAD, wire::Empty());
    for (const auto& one : load.classes()) {
      if (one.class_id() == class_id) return one.held_bytes();
    }
    return 0;
  }

  uint32_t gold_ = 0;
  uint64_t dir_ = 0;
};

TEST_F(ClassSpaceTest, GrowsToItsCapacityAndNoFurther) {
  ASSERT_TRUE(SetCapacity("gold", 100 * kMiB).status.ok());
  const uint64_t a = CreateOpen(dir_, "a");
  const uint64_t b = CreateOpen(dir_, "b");
  EXPECT_GE(Allowed(a, 60 * kMiB), 60 * kMiB);
  EXPECT_EQ(Allowed(b, 50 * kMiB), 0u) << "what a was allowed counts before it is written";
  Grow(a, 60 * kMiB);
  EXPECT_EQ(Held(gold_), 60 * kMiB);
  Release(a);
  EXPECT_EQ(Allowed(b, 40 * kMiB), 40 * kMiB) << "a closed file needs no more than its size";
  const Answer refused = TryGrow(b, 40 * kMiB + 1);
  EXPECT_EQ(refused.status.code(), ErrorCode::kQuota);
  EXPECT_NE(refused.status.message().find("'gold' holds 60MiB of the 100MiB"), std::string::npos)
      << refused.status;
  EXPECT_EQ(Allowed(CreateOpen(kRoot, "free"), 500 * kMiB), 500 * kMiB);
}

// The accident: a mount that had been evicted asked again for room before it began anew, and then
// knew nothing of it: the class lacked it until the mount was unmounted.
TEST_F(ClassSpaceTest, ASessionThatBeginsAnewHasBeenAllowedNothing) {
  ASSERT_TRUE(SetCapacity("gold", 100 * kMiB).status.ok());
  const uint64_t a = CreateOpen(dir_, "a");
  const uint64_t b = CreateOpen(dir_, "b");
  EXPECT_GE(Allowed(a, 60 * kMiB), 60 * kMiB);
  const uint64_t first = std::exchange(session, 8);
  EXPECT_EQ(Allowed(b, 50 * kMiB), 0u);
  session = first;
  wire::OpenSessionRequest successor;
  successor.set_resumes(true);
  for (const uint64_t inode : {a, b}) successor.add_open_inodes(inode);
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, successor);
  session = 8;
  EXPECT_EQ(Allowed(b, 50 * kMiB), 0u) << "another process goes on with what it was allowed";
  session = first;
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, wire::OpenSessionRequest());
  session = 8;
  EXPECT_GE(Allowed(b, 50 * kMiB), 50 * kMiB);
}

// The class and the directory count to where space is kept, whatever of it takes blocks.
TEST_F(ClassSpaceTest, CutsOfSpaceThatIsKeptGiveTheRoomBack) {
  const auto usage = [this](uint64_t mib) {
    const std::string bytes = "bytes=" + std::to_string(mib * kMiB);
    return std::pair(Held(gold_) == mib * kMiB, Get(dir_, "weir.rstats").starts_with(bytes + " "));
  };
  const std::pair all(true, true);
  const uint64_t a = CreateOpen(dir_, "a");
  wire::AllocatedRequest kept;
  kept.set_inode(a);
  kept.set_end(6 * kMiB);
  kept.set_grown_bytes(3 * kMiB);
  ASSERT_EQ(Code(wire::MDS_ALLOCATED, kept), ErrorCode::kOk);
  EXPECT_EQ(usage(6), all);
  osds.frees = {kMiB};
  EXPECT_EQ(Cut(a, 5 * kMiB), ErrorCode::kOk);
  EXPECT_EQ(usage(5), all);
  kept.set_end(9 * kMiB);
  kept.set_keep_size(true);
  kept.set_grown_bytes(4 * kMiB);
  kept.set_beyond_bytes(4 * kMiB);
  ASSERT_EQ(Code(wire::MDS_ALLOCATED, kept), ErrorCode::kOk);
  EXPECT_EQ(usage(9), all);
  osds.frees = {4 * kMiB};
  EXPECT_EQ(Cut(a, 5 * kMiB), ErrorCode::kOk);
  EXPECT_EQ(usage(5), all);
  EXPECT_EQ(Stat(a).attr().blocks(), 2 * kMiB / 512);
  Restart();
  EXPECT_EQ(usage(5), all);
}

TEST_F(ClassSpaceTest, AWriterIsAllowedMoreThanItAskedForButNotAll) {
  ASSERT_TRUE(SetCapacity("gold", 512 * kMiB).status.ok());
  const uint64_t a = CreateOpen(dir_, "a");
  EXPECT_EQ(Allowed(a, kMiB), 2 * kMiB) << "as much again as the file has";
  EXPECT_EQ(Allowed(a, 100 * kMiB), 116 * kMiB) << "at most 16 MiB";
  EXPECT_EQ(Allowed(a, 496 * kMiB), 497 * kMiB) << "a sixteenth of the room";
}

TEST_F(ClassSpaceTest, CutsAndRemovalGiveTheRoomBack) {
  EndGrace();
  ASSERT_TRUE(SetCapacity("gold", 10 * kMiB).status.ok());
  const uint64_t a = CreateOpen(dir_, "a");
  EXPECT_EQ(Allowed(a, 10 * kMiB), 10 * kMiB);
  Grow(a, 10 * kMiB);
  EXPECT_EQ(Cut(a, 11 * kMiB), ErrorCode::kQuota);
  EXPECT_EQ(Cut(a, 4 * kMiB), ErrorCode::kOk);
  EXPECT_EQ(Held(gold_), 4 * kMiB);
  EXPECT_EQ(Allowed(CreateOpen(dir_, "b"), 6 * kMiB), 6 * kMiB);
  EXPECT_EQ(Allowed(a, 5 * kMiB), 0u);
  ASSERT_TRUE(Try(wire::MDS_UNLINK, Name(dir_, "a")).status.ok());
  EXPECT_EQ(Held(gold_), 4 * kMiB) << "it is still open";
  Release(a);
  EXPECT_EQ(Held(gold_), 0u);
}

TEST_F(ClassSpaceTest, TheClassIsTheOneAtTheTimeOfWriting) {
  const uint32_t web = MakeClass("web").id();
  const uint64_t a = CreateOpen(dir_, "a");
  Grow(a, 3 * kMiB);
  EXPECT_EQ(Held(gold_), 3 * kMiB) << "counted without a capacity too";
  ASSERT_EQ(Tag(a, "web"), ErrorCode::kOk);
  EXPECT_EQ(Held(gold_), 3 * kMiB);
  Grow(a, 3 * kMiB);
  EXPECT_EQ(Held(gold_), 0u);
  EXPECT_EQ(Held(web), 3 * kMiB);
  ASSERT_TRUE(SetCapacity("gold", 2 * kMiB).status.ok());
  ASSERT_EQ(Tag(a, "gold"), ErrorCode::kOk);
  Grow(a, 3 * kMiB);
  EXPECT_EQ(Held(web), 3 * kMiB) << "no room for it in gold";
  EXPECT_EQ(Allowed(a, 4 * kMiB), 0u);
  const uint64_t untagged = CreateOpen(kRoot, "untagged");
  wire::WroteRequest wrote;
  wrote.set_inode(untagged);
  wrote.set_size_at_least(kMiB);
  wrote.set_class_id(web);
  Ask<wire::EntryReply>(wire::MDS_WROTE, wrote);
  EXPECT_EQ(Held(web), 4 * kMiB);
  ASSERT_TRUE(SetCapacity("web", 5 * kMiB).status.ok());
  EXPECT_EQ(Allowed(untagged, 2 * kMiB, web), 2 * kMiB);
  EXPECT_EQ(Allowed(untagged, 2 * kMiB + 1, web), 0u);
}

TEST_F(ClassSpaceTest, GrantsEndWithTheirSessionAndSumsOutliveARestart) {
  ASSERT_TRUE(SetCapacity("gold", 100 * kMiB).status.ok());
  const uint64_t a = CreateOpen(dir_, "a");
  EXPECT_GE(Allowed(a, 90 * kMiB), 90 * kMiB);
  Grow(a, 30 * kMiB);
  session = 8;
  const uint64_t b = CreateOpen(dir_, "b");
  EXPECT_EQ(Allowed(b, 20 * kMiB), 0u);
  session = 7;
  ASSERT_TRUE(Try(wire::MDS_CLOSE_SESSION, wire::Empty()).status.ok());
  session = 8;
  EXPECT_EQ(Allowed(b, 70 * kMiB), 70 * kMiB);
  Restart();
  EXPECT_EQ(Held(gold_), 30 * kMiB);
  EXPECT_EQ(Allowed(b, 70 * kMiB + 1), 0u);
  EXPECT_EQ(Allowed(b, 70 * kMiB), 70 * kMiB);
}

TEST_F(ClassSpaceTest, CapacitiesAreAdmittedToWhatTheDisksHave) {
  MakeClass("web");
  ASSERT_TRUE(SetCapacity("gold", 700 * kMiB).status.ok());
  const Answer refused = SetCapacity("web", 400 * kMiB);
  EXPECT_EQ(refused.status.code(), ErrorCode::kRefused);
  EXPECT_EQ(refused.status.message(),
            "cannot promise a capacity of 400MiB to 'web': 700MiB of 1GiB already promised "
            "(largest that fits: 324MiB)");
  EXPECT_TRUE(SetCapacity("web", 324 * kMiB).status.ok());
  EXPECT_TRUE(SetCapacity("gold", 600 * kMiB).status.ok());
  EXPECT_TRUE(SetCapacity("gold", UINT64_MAX).status.ok()) << "max lifts it";
  EXPECT_TRUE(SetCapacity("web", 1024 * kMiB).status.ok());
  EXPECT_EQ(SetCapacity("web", 0).status.code(), ErrorCode::kInvalid);
  EXPECT_EQ(SetCapacity("system.purge", kMiB).status.code(), ErrorCode::kInvalid);
  Restart();
  EXPECT_EQ(core->keeper().map()->FindClass("web")->capacity_bytes, 1024 * kMiB);
}

TEST_F(ClassSpaceTest, StatusTellsOfCapacitiesThatFindNoSpaceAnyMore) {
  ASSERT_TRUE(SetCapacity("gold", 700 * kMiB).status.ok());
  const auto warnings = [this] {
    return Ask<wire::StatusReply>(wire::MDS_STATUS, wire::Empty()).warnings_size();
  };
  EXPECT_EQ(warnings(), 0);
  wire::WatchRequest watch;
  watch.set_osd_id(0);
  watch.set_have_epoch(core->keeper().map()->epoch.value);
  watch.set_used_bytes(400 * kMiB);
  Send(wire::MDS_WATCH, watch);
  EXPECT_EQ(warnings(), 1);
  Grow(CreateOpen(dir_, "a"), 100 * kMiB);
  EXPECT_EQ(warnings(), 0) << "what the class holds is no more promised";
}

// Method: random growth, cuts, tags and removals; each class's sum against the files' sizes, which
// no class with a capacity exceeds.
TEST_F(ClassSpaceTest, SumsAreThoseOfTheFilesWhateverHappens) {
  const uint32_t web = MakeClass("web").id();
  ASSERT_TRUE(SetCapacity("gold", 64 * kMiB).status.ok());
  EndGrace();
  Prng prng(weir::testing::TestSeed());
  std::map<uint64_t, std::string> files;
  for (int step = 0; step < 400; ++step) {
    const std::string name = "f" + std::to_string(prng.Uniform(0, 5));
    const auto found = std::find_if(files.begin(), files.end(),
                                    [&](const auto& one) { return one.second == name; });
    const uint64_t size = prng.Uniform(0, 40) * kMiB;
    if (found == files.end()) {
      files[CreateOpen(dir_, name)] = name;
    } else if (prng.Chance(0.1)) {
      ASSERT_TRUE(Try(wire::MDS_UNLINK, Name(dir_, name)).status.ok());
      Release(found->first);
      files.erase(found);
    } else if (prng.Chance(0.2)) {
      Tag(found->first, prng.Chance(0.5) ? "web" : "gold");
    } else if (prng.Chance(0.3)) {
      (void)Cut(found->first, size);
    } else if (Allowed(found->first, size) >= size) {
      Grow(found->first, size);
    }
    uint64_t sum = 0;
    for (const auto& [inode, file] : files) sum += Stat(inode).attr().size();
    ASSERT_EQ(Held(gold_) + Held(web), sum) << "step " << step;
    ASSERT_LE(Held(gold_), 64 * kMiB) << "step " << step;
  }
}

}  // namespace
}  // namespace weir::mds
