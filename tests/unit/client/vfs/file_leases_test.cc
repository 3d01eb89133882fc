// FileLeases and LeaseKeeper: what a mount says of files by itself, and how it gives leases back.
#include "client/vfs/file_leases.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <optional>
#include <thread>

#include "client/vfs/dir_cache.h"
#include "client/vfs/lease_keeper.h"
#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kEpoch = 77;
constexpr InodeId kFile{5};

class FileLeasesTest : public ::testing::Test {
 protected:
  FileLeasesTest() { leases.BeginSession(kEpoch, clock.Now()); }
  static wire::EntryReply Reply(bool write, uint64_t seq = 0) {
    wire::EntryReply reply;
    reply.mutable_attr()->set_inode(kFile.value);
    reply.mutable_attr()->set_mode(S_IFREG | 0644);
    reply.mutable_file_lease()->set_epoch(kEpoch);
    reply.mutable_file_lease()->set_seq(seq);
    reply.mutable_file_lease()->set_write(write);
    return reply;
  }
  void Learn(bool write, uint64_t seq = 0) {
    leases.Learn(inode, Reply(write, seq), leases.Asked());
  }

  testing::ManualClock clock;
  FileLeases leases{clock, false};
  InodeTable inodes;
  InodePtr inode = inodes.Lookup(kFile);
};

TEST_F(FileLeasesTest, AnswersUnderALeaseThatIsTrusted) {
  EXPECT_FALSE(leases.MayAnswer(*inode));
  leases.Learn(inode, wire::EntryReply(), leases.Asked());
  EXPECT_FALSE(leases.MayAnswer(*inode)) << "a reply without a lease";
  Learn(false);
  EXPECT_TRUE(leases.MayAnswer(*inode));
  clock.Advance(kLeaseTrust);
  EXPECT_FALSE(leases.MayAnswer(*inode)) << "no WATCH was answered for too long";
  leases.Renew(kEpoch, 0, clock.Now());
  EXPECT_TRUE(leases.MayAnswer(*inode));
}

TEST_F(FileLeasesTest, ForgetsWithARecallAndWithItsOwnChanges) {
  Learn(false);
  leases.Changed();
  EXPECT_FALSE(leases.MayAnswer(*inode));
  const uint64_t asked = leases.Asked();
  leases.Changed();
  leases.Learn(inode, Reply(false), asked);
  EXPECT_FALSE(leases.MayAnswer(*inode)) << "the reply may be older than the change";
  Learn(false);
  EXPECT_TRUE(leases.MayAnswer(*inode));
  const uint64_t generation = inode->generation();
  EXPECT_FALSE(leases.Revoke(inode)) << "it was for reading";
  EXPECT_FALSE(leases.MayAnswer(*inode));
  EXPECT_GT(inode->generation(), generation) << "what was read ahead is void";
  leases.Renew(kEpoch, 3, clock.Now());
  Learn(false, 2);
  EXPECT_FALSE(leases.MayAnswer(*inode)) << "a lease that a recall has overtaken";
  Learn(false, 3);
  EXPECT_TRUE(leases.MayAnswer(*inode));
}

TEST_F(FileLeasesTest, AChangeOfOneFileSaysNothingOfOthers) {
  const InodePtr other = inodes.Lookup(InodeId(6));
  Learn(false);
  leases.Learn(other, Reply(false), leases.Asked());
  const uint64_t asked = leases.Asked();
  leases.Changed(inode.get());
  EXPECT_FALSE(leases.MayAnswer(*inode));
  EXPECT_TRUE(leases.MayAnswer(*other));
  leases.Learn(inode, Reply(false), asked);
  EXPECT_FALSE(leases.MayAnswer(*inode)) << "the reply may be older than the change";
  EXPECT_NE(leases.NamesOf(*inode), 0u) << "names hold whatever is changed here";
  Learn(false);
  EXPECT_TRUE(leases.MayAnswer(*inode));
}

TEST_F(FileLeasesTest, WhatWasReadHoldsWhenTheFileIsClosed) {
  Learn(true);
  leases.BeginRelease(kFile);
  leases.EndRelease(kFile);
  EXPECT_TRUE(leases.MayAnswer(*inode));
  EXPECT_FALSE(leases.BeginWrite(kFile));
}

// What would be held under it then, nobody would ask for.
TEST_F(FileLeasesTest, NoAnswerAllowsWritesWhileTheFileIsReleased) {
  Learn(true);
  ASSERT_TRUE(leases.BeginWrite(kFile));
  leases.BeginRelease(kFile);
  bool quiet = false;
  leases.WhenQuiet(kFile, [&] { quiet = true; });
  leases.EndWrite(kFile);
  EXPECT_TRUE(quiet);
  Learn(true);
  EXPECT_FALSE(leases.BeginWrite(kFile)) << "the MDS has not heard of the close yet";
  EXPECT_TRUE(leases.MayAnswer(*inode));
  leases.EndRelease(kFile);
  EXPECT_FALSE(leases.BeginWrite(kFile));
  Learn(true);
  EXPECT_TRUE(leases.BeginWrite(kFile)) << "opened again";
}

TEST_F(FileLeasesTest, WritesUnderWayEndBeforeTheLeaseGoes) {
  EXPECT_FALSE(leases.BeginWrite(kFile));
  Learn(false);
  EXPECT_FALSE(leases.BeginWrite(kFile));
  Learn(true);
  ASSERT_TRUE(leases.BeginWrite(kFile));
  ASSERT_TRUE(leases.BeginWrite(kFile));
  EXPECT_TRUE(leases.Revoke(inode));
  EXPECT_FALSE(leases.BeginWrite(kFile));
  bool quiet = false;
  leases.WhenQuiet(kFile, [&] { quiet = true; });
  leases.EndWrite(kFile);
  EXPECT_FALSE(quiet);
  leases.EndWrite(kFile);
  EXPECT_TRUE(quiet);
}

TEST_F(FileLeasesTest, ANewSessionHasNoLeases) {
  Learn(true);
  const std::vector<InodeId> written = leases.BeginSession(kEpoch + 1, clock.Now());
  EXPECT_EQ(written, std::vector<InodeId>{kFile});
  EXPECT_FALSE(leases.MayAnswer(*inode));
  EXPECT_FALSE(leases.BeginWrite(kFile));
  Learn(true);
  EXPECT_FALSE(leases.BeginWrite(kFile)) << "of the session before";
}

TEST_F(FileLeasesTest, AMountThatIsAloneHasThemAll) {
  FileLeases alone(clock, true);
  EXPECT_TRUE(alone.BeginWrite(kFile));
  EXPECT_FALSE(alone.MayAnswer(*inode));
  alone.Learn(inode, wire::EntryReply(), alone.Asked());
  clock.Advance(1h);
  EXPECT_TRUE(alone.MayAnswer(*inode));
  alone.Changed();
  EXPECT_FALSE(alone.MayAnswer(*inode));
}

// What a LeaseKeeper has done, in order.
class LeaseKeeperTest : public FileLeasesTest {
 protected:
  void Note(const std::string& what) {
    std::lock_guard lock(mutex);
    done.push_back(what);
    changed.notify_all();
  }
  std::vector<std::string> Await(size_t count) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, 30s, [&] { return done.size() >= count; });
    return done;
  }
  LeaseKeeper::Hooks Hooks() {
    LeaseKeeper::Hooks hooks;
    hooks.forget_pages = [this](InodeId) { Note("forget"); };
    hooks.flush = [this](const InodePtr&, const std::function<void()>& flushed) {
      Note("flush");
      flushed();
    };
    hooks.yield = [this](uint64_t, uint64_t seq, const auto&, const std::function<void()>& end) {
      Note("yield " + std::to_string(seq));
      end();
    };
    return hooks;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> done;
};

TEST_F(LeaseKeeperTest, AReadersLeaseGoesWhenTheKernelHasForgotten) {
  Learn(false);
  LeaseKeeper keeper(leases, inodes, Hooks());
  keeper.Recalled(1, {kFile});
  EXPECT_FALSE(leases.MayAnswer(*inode));
  EXPECT_EQ(Await(2), (std::vector<std::string>{"forget", "yield 1"}));
}

// A kernel that holds pages until its own write is answered, while another mount writes as well.
class KernelThatWritesTest : public LeaseKeeperTest {
 protected:
  KernelThatWritesTest() {
    LeaseKeeper::Hooks hooks = Hooks();
    hooks.forget_pages = [this, held = answered.get_future().share()](InodeId) {
      Note("forget");
      held.wait();
    };
    hooks.forget_attributes = [this](InodeId) { Note("attributes"); };
    keeper.emplace(leases, inodes, std::move(hooks));
    keeper->Recalled(1, {kFile});
    Await(1);
    write = keeper->BeginKernelWrite(kFile);
    Await(2);
    keeper->Recalled(2, {kFile});
  }
  void Answer() {
    write.reset();
    answered.set_value();
  }
  // Until the keeper has done with the file.
  void AwaitEnd(const std::function<void()>& meanwhile) {
    while (inode.use_count() > of_nobody_else) {
      meanwhile();
      std::this_thread::yield();
    }
  }

  const std::vector<std::string> obeyed = {"forget", "yield 1", "attributes", "yield 2"};
  const int64_t of_nobody_else = inode.use_count();
  std::promise<void> answered;
  std::shared_ptr<void> write;
  std::optional<LeaseKeeper> keeper;
};

// The kernel would drop the size that it asks for as soon as the writers have ended.
TEST_F(KernelThatWritesTest, DropsAttributesBeforeTheOtherWriteEndsAndNotAfter) {
  EXPECT_EQ(Await(4), obeyed);
  Answer();
  AwaitEnd([] {});
  EXPECT_EQ(Await(0), obeyed);
}

TEST_F(KernelThatWritesTest, PagesThatCameMeanwhileGoLater) {
  EXPECT_EQ(Await(4), obeyed);
  inode->FillsPages();
  Answer();
  AwaitEnd([this] {
    keeper->Tick(clock.Now());
    clock.Advance(1s);
  });
  std::vector<std::string> all = obeyed;
  all.emplace_back("forget");
  EXPECT_EQ(Await(5), all);
}

TEST_F(KernelThatWritesTest, PagesThatCameMeanwhileGoWithALook) {
  EXPECT_EQ(Await(4), obeyed);
  inode->FillsPages();
  Answer();
  AwaitEnd([this] {
    inode->set_told(inode->told() + 1);
    keeper->Tick(clock.Now());
    clock.Advance(100ms);
  });
  EXPECT_EQ(Await(0), obeyed);
}

TEST_F(KernelThatWritesTest, IsAskedForPagesAgainWhenItIsFree) {
  EXPECT_EQ(Await(4), obeyed);
  write.reset();
  keeper->Recalled(3, {kFile});
  answered.set_value();
  std::vector<std::string> all = obeyed;
  all.insert(all.end(), {"forget", "yield 3"});
  EXPECT_EQ(Await(6), all);
}

// It has dropped the attributes by then.
TEST_F(LeaseKeeperTest, AKernelThatWritesIsWaitedForUntilItWaitsForAPage) {
  LeaseKeeper::Hooks hooks = Hooks();
  std::promise<void> answered;
  hooks.forget_pages = [this, held = answered.get_future().share()](InodeId) {
    Note("forget");
    held.wait();
  };
  hooks.waits_for_page = [this, looks = 0](pid_t) mutable {
    Note("look");
    return ++looks == 2;
  };
  LeaseKeeper keeper(leases, inodes, hooks);
  keeper.Recalled(1, {kFile});
  EXPECT_EQ(Await(1), std::vector<std::string>{"forget"});
  const auto write = keeper.BeginKernelWrite(kFile);
  EXPECT_EQ(Await(4), (std::vector<std::string>{"forget", "look", "look", "yield 1"}));
  answered.set_value();
}

TEST_F(LeaseKeeperTest, AKernelThatWritesAlreadyIsNotWaitedForEither) {
  LeaseKeeper::Hooks hooks = Hooks();
  std::promise<void> answered;
  hooks.forget_pages = [held = answered.get_future().share()](InodeId) { held.wait(); };
  LeaseKeeper keeper(leases, inodes, hooks);
  const auto write = keeper.BeginKernelWrite(kFile);
  keeper.Recalled(1, {kFile});
  EXPECT_EQ(Await(1), std::vector<std::string>{"yield 1"});
  answered.set_value();
}

TEST_F(LeaseKeeperTest, ARecallMeanwhileIsObeyedByForgettingAnew) {
  LeaseKeeper::Hooks hooks = Hooks();
  std::promise<void> first;
  hooks.forget_pages = [this, held = first.get_future().share()](InodeId) {
    Note("forget");
    held.wait();
  };
  LeaseKeeper keeper(leases, inodes, hooks);
  keeper.Recalled(1, {kFile});
  EXPECT_EQ(Await(1), std::vector<std::string>{"forget"});
  keeper.Recalled(2, {kFile});
  first.set_value();
  EXPECT_EQ(Await(4), (std::vector<std::string>{"forget", "yield 1", "forget", "yield 2"}));
}

TEST_F(LeaseKeeperTest, AWritersLeaseGoesWhenAllIsFlushed) {
  Learn(true);
  ASSERT_TRUE(leases.BeginWrite(kFile));
  LeaseKeeper keeper(leases, inodes, Hooks());
  keeper.Recalled(4, {kFile});
  keeper.Recalled(4, {kFile});  // WATCH says it again
  EXPECT_EQ(Await(1), std::vector<std::string>{"forget"});
  leases.EndWrite(kFile);
  EXPECT_EQ(Await(3), (std::vector<std::string>{"forget", "flush", "yield 4"}));
}

TEST_F(LeaseKeeperTest, UnknownFilesAreGivenBack) {
  LeaseKeeper keeper(leases, inodes, Hooks());
  keeper.Recalled(1, {InodeId(99)});
  EXPECT_EQ(Await(1), std::vector<std::string>{"yield 1"});
}

TEST_F(LeaseKeeperTest, WhatWasWrittenUnderALostLeaseIsFlushed) {
  LeaseKeeper keeper(leases, inodes, Hooks());
  keeper.Lost({kFile}, {kFile});
  EXPECT_EQ(Await(2), (std::vector<std::string>{"forget", "flush"}));
}

}  // namespace
}  // namespace weir::client
