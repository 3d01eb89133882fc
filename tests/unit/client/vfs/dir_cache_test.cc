// DirCache: what a mount says of directories under leases, and when it must not.
#include "client/vfs/dir_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using Look = DirCache::Look::Kind;
using Kind = DirCache::Kind;

constexpr uint64_t kEpoch = 77;
constexpr InodeId kRoot{1};
constexpr InodeId kDir{2};

class DirCacheTest : public ::testing::Test {
 protected:
  DirCacheTest() { cache.BeginSession(kEpoch, clock.Now()); }

  static wire::EntryReply Reply(InodeId inode, bool empty, uint64_t seq = 0) {
    wire::EntryReply reply;
    reply.mutable_attr()->set_inode(inode.value);
    reply.mutable_attr()->set_mode(S_IFDIR | 0750);
    reply.mutable_attr()->set_uid(10);
    reply.mutable_attr()->set_gid(20);
    reply.mutable_attr()->set_version(1);
    reply.mutable_lease()->set_epoch(kEpoch);
    reply.mutable_lease()->set_seq(seq);
    reply.mutable_lease()->set_empty(empty);
    return reply;
  }
  void Lease(InodeId inode, bool empty, uint64_t seq = 0) {
    const auto asking = cache.Ask(InodeId());
    cache.Learn(*asking, ".", Reply(inode, empty, seq));
  }
  Look Find(InodeId parent, const std::string& name, uint32_t uid = 0, uint32_t gid = 0) {
    wire::Caller caller;
    caller.set_uid(uid);
    caller.set_gid(gid);
    return cache.Find(parent, name, caller).kind;
  }

  testing::ManualClock clock;
  DirCache cache{clock, {.directories = 8, .learned = 100, .present = 200}};
};

TEST_F(DirCacheTest, KnowsWhatIsNotInADirectoryThatWasEmpty) {
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  Lease(kDir, true);
  EXPECT_EQ(Find(kDir, "x"), Look::kAbsent);
  const auto changing = cache.BeginChange({{Kind::kAdd, kDir, "x"}});
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  EXPECT_EQ(Find(kDir, "y"), Look::kAbsent);
  EXPECT_EQ(Find(kDir, ".."), Look::kAskMds);
  EXPECT_EQ(Find(kDir, std::string(256, 'n')), Look::kAskMds) << "for the MDS to refuse";
}

TEST_F(DirCacheTest, AMountThatIsAloneKnowsWhatItMade) {
  DirCache alone(clock);
  alone.BeginAlone();
  const auto asking = alone.Ask(kRoot);
  wire::EntryReply made = Reply(kDir, false);
  made.clear_lease();
  alone.LearnMade(*asking, "d", made);
  clock.Advance(1h);
  EXPECT_EQ(alone.Find(kDir, "x", wire::Caller()).kind, Look::kAbsent);
  EXPECT_EQ(alone.Find(kRoot, "x", wire::Caller()).kind, Look::kAskMds);
  EXPECT_FALSE(alone.Wants(kRoot)) << "nobody would give a lease";
}

TEST_F(DirCacheTest, KnowsNothingOfADirectoryThatWasNotEmpty) {
  Lease(kDir, false);
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
}

TEST_F(DirCacheTest, FindsDirectoriesWhileBothLeasesLast) {
  Lease(kRoot, false);
  {
    const auto asking = cache.Ask(kRoot);
    cache.Learn(*asking, "d", Reply(kDir, true));
  }
  EXPECT_EQ(Find(kRoot, "d"), Look::kDirectory);
  cache.Renew(kEpoch, 1, {kDir}, clock.Now());
  EXPECT_EQ(Find(kRoot, "d"), Look::kAskMds);
  EXPECT_EQ(cache.obeyed(), 1u);
}

TEST_F(DirCacheTest, BelievesOnlyAsLongAsWatchesAreAnswered) {
  Lease(kDir, true);
  clock.Advance(1400ms);
  EXPECT_EQ(Find(kDir, "x"), Look::kAbsent);
  clock.Advance(200ms);
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  cache.Renew(kEpoch, 0, {}, clock.Now());
  EXPECT_EQ(Find(kDir, "x"), Look::kAbsent);
  cache.Renew(kEpoch + 1, 0, {}, clock.Now() + 10s);  // of another session
  clock.Advance(2s);
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
}

TEST_F(DirCacheTest, ALeaseOlderThanARecallIsNone) {
  cache.Renew(kEpoch, 3, {kDir}, clock.Now());
  Lease(kDir, true, 2);
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  Lease(kDir, true, 3);
  EXPECT_EQ(Find(kDir, "x"), Look::kAbsent);
}

TEST_F(DirCacheTest, ANewSessionForgetsAll) {
  Lease(kDir, true);
  cache.BeginSession(kEpoch + 1, clock.Now());
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  Lease(kDir, true);  // a late reply to the old one
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  cache.BeginSession(0, clock.Now());
  EXPECT_EQ(cache.Ask(kDir), nullptr);
}

TEST_F(DirCacheTest, EmptyDoesNotCountWhenSomethingWasAddedMeanwhile) {
  for (const bool ends_first : {false, true}) {
    cache.BeginSession(kEpoch, clock.Now());
    auto adding = cache.BeginChange({{Kind::kAdd, kDir, "x"}});
    const auto asking = cache.Ask(kRoot);
    if (ends_first) adding = nullptr;
    cache.Learn(*asking, "d", Reply(kDir, true));
    EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
    EXPECT_EQ(Find(kDir, "y"), Look::kAskMds);
  }
  Lease(kDir, true);
  EXPECT_EQ(Find(kDir, "y"), Look::kAbsent);
}

TEST_F(DirCacheTest, KnowsWhereNamesOfFilesLead) {
  wire::EntryReply file;
  file.mutable_attr()->set_inode(77);
  file.mutable_attr()->set_mode(S_IFREG | 0644);
  Lease(kDir, false);
  const auto learn = [&] { cache.Learn(*cache.Ask(kDir), "f", file); };
  learn();
  EXPECT_EQ(Find(kDir, "f"), Look::kOther);
  cache.BeginChange({{Kind::kAdd, kDir, "g"}});
  EXPECT_EQ(Find(kDir, "f"), Look::kOther);
  cache.BeginChange({{Kind::kRemove, kDir, "f"}});
  EXPECT_EQ(Find(kDir, "f"), Look::kAskMds);
  learn();
  const auto asking = cache.Ask(kDir);
  cache.Renew(kEpoch, 1, {kDir}, clock.Now());
  EXPECT_EQ(Find(kDir, "f"), Look::kAskMds);
  Lease(kDir, false, 1);
  cache.Learn(*asking, "f", file);
  EXPECT_EQ(Find(kDir, "f"), Look::kAskMds) << "asked under the lease before";
}

// So `mv` and then `rm`, or a look when the kernel's name is old, need no look at the MDS.
TEST_F(DirCacheTest, KnowsWhereAFileWasMoved) {
  constexpr InodeId kFile{77};
  const auto rename = [&] {
    return cache.BeginChange({{Kind::kRemove, kDir, "f"},
                              {Kind::kAdd, kDir, "f"},
                              {Kind::kRemove, kRoot, "g"},
                              {Kind::kAdd, kRoot, "g"}});
  };
  Lease(kDir, false);
  Lease(kRoot, false);
  auto moving = rename();
  cache.LearnMoved(*moving, kRoot, "g", kFile);
  cache.End(moving.get());
  EXPECT_EQ(Find(kRoot, "g"), Look::kOther);
  EXPECT_EQ(Find(kDir, "f"), Look::kAskMds);
  cache.BeginChange({{Kind::kRemove, kRoot, "g"}});
  EXPECT_EQ(Find(kRoot, "g"), Look::kAskMds);

  moving = rename();
  auto removing = cache.BeginChange({{Kind::kRemove, kRoot, "g"}});
  cache.LearnMoved(*moving, kRoot, "g", kFile);
  EXPECT_EQ(Find(kRoot, "g"), Look::kAskMds) << "it may come behind the rename";
  cache.End(removing.get());
  cache.LearnMoved(*moving, kRoot, "g", kFile);
  EXPECT_EQ(Find(kRoot, "g"), Look::kAskMds) << "or have come";
  cache.End(moving.get());

  removing = cache.BeginChange({{Kind::kRemove, kRoot, "x"}});
  moving = rename();
  cache.LearnMoved(*moving, kRoot, "g", kFile);
  EXPECT_EQ(Find(kRoot, "g"), Look::kAskMds) << "one that was under way before";
  cache.End(removing.get());
  cache.End(moving.get());

  moving = rename();
  cache.Renew(kEpoch, 1, {kRoot}, clock.Now());
  cache.LearnMoved(*moving, kRoot, "g", kFile);
  EXPECT_EQ(Find(kRoot, "g"), Look::kAskMds);
  Lease(kRoot, false, 1);
  cache.LearnMoved(*moving, kRoot, "g", kFile);
  EXPECT_EQ(Find(kRoot, "g"), Look::kAskMds) << "others may have moved it between the leases";
}

TEST_F(DirCacheTest, ANameThatIsBeingRemovedIsNotLearnt) {
  Lease(kRoot, false);
  const auto asking = cache.Ask(kRoot);
  cache.BeginChange({{Kind::kRemove, kRoot, "d"}});
  cache.Learn(*asking, "d", Reply(kDir, true));
  EXPECT_EQ(Find(kRoot, "d"), Look::kAskMds);
}

TEST_F(DirCacheTest, ALookThatBeganUnderAnotherLeaseTeachesNoName) {
  Lease(kRoot, false);
  const auto asking = cache.Ask(kRoot);
  cache.Renew(kEpoch, 1, {kRoot}, clock.Now());
  Lease(kRoot, false, 1);
  cache.Learn(*asking, "d", Reply(kDir, true, 1));
  EXPECT_EQ(Find(kRoot, "d"), Look::kAskMds);
}

TEST_F(DirCacheTest, ChangedRightsEndTheLeaseAndThoseUnderWay) {
  Lease(kDir, true);
  const auto asking = cache.Ask(kRoot);
  auto changing = cache.BeginChange({{Kind::kRights, kDir, {}}});
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  cache.Learn(*asking, "d", Reply(kDir, true));
  EXPECT_EQ(Find(kDir, "x"), Look::kAskMds);
  changing = nullptr;
  Lease(kDir, true);
  EXPECT_EQ(Find(kDir, "x"), Look::kAbsent);
}

TEST_F(DirCacheTest, NamesChangeUntilTheAnswer) {
  EXPECT_FALSE(cache.NamesAreChanging(kDir));
  auto rights = cache.BeginChange({{Kind::kRights, kDir, {}}});
  EXPECT_FALSE(cache.NamesAreChanging(kDir));
  auto moving = cache.BeginChange(
      {{Kind::kRemove, kDir, "a"}, {Kind::kAdd, kDir, "b"}, {Kind::kAdd, kRoot, "b"}});
  EXPECT_TRUE(cache.NamesAreChanging(kDir));
  EXPECT_TRUE(cache.NamesAreChanging(kRoot));
  EXPECT_EQ(DirCache::DirectoriesOf(*moving), (std::vector{kDir, kRoot}));
  cache.End(moving.get());
  EXPECT_FALSE(cache.NamesAreChanging(kDir));
  moving = nullptr;
  EXPECT_TRUE(cache.IsChanging(kDir)) << "its rights still";
}

TEST_F(DirCacheTest, WhoMayNotPassIsLeftToTheMds) {
  Lease(kDir, true);
  EXPECT_EQ(Find(kDir, "x", 10), Look::kAbsent);
  EXPECT_EQ(Find(kDir, "x", 11, 20), Look::kAbsent);
  EXPECT_EQ(Find(kDir, "x", 11, 21), Look::kAskMds);
}

TEST_F(DirCacheTest, ManyNamesMadeLeaveADirectoryKnown) {
  Lease(kDir, true);
  for (uint64_t i = 0; i < 200; ++i) {
    const std::string name = "f" + std::to_string(i);
    const auto asking = cache.Ask(kDir);
    const auto changing = cache.BeginChange({{Kind::kAdd, kDir, name}});
    wire::EntryReply made = Reply(InodeId(1000 + i), false);
    made.mutable_attr()->set_mode(S_IFREG | 0644);
    made.clear_lease();
    cache.Learn(*asking, name, made);
  }
  EXPECT_EQ(Find(kDir, "other"), Look::kAbsent) << "each of 200 is one name, though 100 lead on";
  EXPECT_EQ(Find(kDir, "f99"), Look::kOther);
  EXPECT_EQ(Find(kDir, "f100"), Look::kAskMds);
}

TEST_F(DirCacheTest, MemoryIsBounded) {
  Lease(kDir, true);
  for (int i = 0; i < 201; ++i) {
    cache.BeginChange({{Kind::kAdd, kDir, "f" + std::to_string(i)}});
    EXPECT_EQ(Find(kDir, "f" + std::to_string(i)), Look::kAskMds);
  }
  EXPECT_EQ(Find(kDir, "other"), Look::kAskMds);
  for (uint64_t i = 100; i < 120; ++i) Lease(InodeId(i), true);
  size_t known = 0;
  for (uint64_t i = 100; i < 120; ++i) known += Find(InodeId(i), "x") == Look::kAbsent ? 1 : 0;
  EXPECT_GT(known, 0u);
  EXPECT_LE(known, 8u);
}

TEST_F(DirCacheTest, WantsALeaseNowAndThen) {
  EXPECT_TRUE(cache.Wants(kRoot));
  clock.Advance(100ms);
  EXPECT_FALSE(cache.Wants(kRoot));
  clock.Advance(50ms);
  EXPECT_TRUE(cache.Wants(kRoot));
  Lease(kRoot, false);
  clock.Advance(6s);
  EXPECT_FALSE(cache.Wants(kRoot));
}

}  // namespace
}  // namespace weir::client
