// Goal: a mount that is cut off, while the MDS restarts or hears no OSD either, cannot flush what
// it holds over what others have written since; and what a mount was told of names and attributes
// outlives the MDS that told it. Method: the parts of the simulated cluster, with
// one story instead of a seed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "common/base/log.h"
#include "common/net/envelope.h"
#include "common/wire/rpc.pb.h"
#include "mds/check/namespace_check.h"
#include "mds/service/mds_core.h"
#include "tests/crash/cluster/machines.h"
#include "tests/crash/cluster/sim_mount.h"

namespace weir::crash {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kOsds = 3;

class RestartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LogOptions quiet;
    quiet.level = LogLevel::kOff;
    ASSERT_TRUE(InitLogging(quiet).ok());
    ASSERT_TRUE(mds_.Boot().ok());
    for (uint32_t id = 0; id < kOsds; ++id) {
      osds_[id] = std::make_unique<SimOsd>(world_, id);
      wire::RegisterOsdRequest request;
      request.set_osd_uuid(osds_[id]->uuid());
      request.set_capacity_bytes(32 << 20);
      request.set_token_rate(200 << 20);
      ASSERT_TRUE(mds_.core().keeper().RegisterOsd(request).ok());
      ASSERT_TRUE(osds_[id]->Boot().ok());
    }
    network_.RunFor(1s);
    ASSERT_TRUE(Finish(Mount(&first_)));
    ASSERT_TRUE(Finish(Mount(&second_)));
  }
  void TearDown() override {
    story_ = Task();
    first_.Crash();
    second_.Crash();
  }

  // Runs until it is done, or for that long.
  bool Finish(Task task, Duration most = 30s) {
    story_ = std::move(task);
    story_.Start();
    return network_.RunUntil([this] { return story_.done(); }, most);
  }
  void CutOff(const std::string& mount) {
    network_.Cut(mount, "mds");
    for (const auto& osd : osds_) network_.Cut(mount, osd->name());
  }
  // The first mount made a file and wrote it twice; what it wrote last is nowhere else.
  void CutOffWhileItHolds(client::HandlePtr* handle) {
    ASSERT_TRUE(Finish(Create(&first_, handle)));
    ASSERT_TRUE(Finish(Write(&first_, handle, Bytes(5000, 'a'))));
    ASSERT_TRUE(Finish(Sync(&first_, handle)));
    ASSERT_TRUE(Finish(Write(&first_, handle, Bytes(5000, 'b'))));
    CutOff("first");
  }
  // Of a request; 0: of none.
  static uint32_t MethodOf(const net::Message& message) {
    wire::RpcHeader header;
    bool matches = false;
    const Status opened = net::DecodeFrame(net::Direction::kToServer, message.header,
                                           message.payload.size(), &header, &matches);
    return opened.ok() ? header.method() : 0;
  }
  void RestartMds() {
    mds_.Crash();
    network_.RunFor(100ms);
    ASSERT_TRUE(mds_.Boot().ok());
  }

  static Task Mount(SimMount* mount) {
    const Status mounted = co_await mount->Mount();
    EXPECT_TRUE(mounted.ok()) << mounted;
  }
  static Task Unmount(SimMount* mount) {
    const Status unmounted = co_await mount->Unmount();
    EXPECT_TRUE(unmounted.ok()) << unmounted;
  }
  static Task Make(SimMount* mount, InodeId parent, std::string name) {
    const auto made = co_await mount->Make(parent, name, S_IFDIR | 0755);
    EXPECT_TRUE(made.ok()) << made.status();
  }
  static Task Remove(SimMount* mount, InodeId parent, std::string name) {
    const Status removed = co_await mount->Remove(parent, name, /*directory=*/false);
    EXPECT_TRUE(removed.ok()) << removed;
  }
  static Task MakeUnheard(SimMount* mount, InodeId parent, std::string name) {
    (void)co_await mount->Make(parent, name, S_IFDIR | 0755);
  }
  static Task Lookup(SimMount* mount, InodeId parent, std::string name, InodeId* found) {
    const auto entry = co_await mount->Lookup(parent, name);
    EXPECT_TRUE(entry.ok()) << entry.status();
    if (entry.ok()) *found = entry->inode;
  }
  static Task Create(SimMount* mount, client::HandlePtr* handle, std::string name = "f") {
    const auto made = co_await mount->Create(mount->root(), name, true);
    EXPECT_TRUE(made.ok()) << made.status();
    *handle = *made;
  }
  static Task Write(SimMount* mount, const client::HandlePtr* handle, Bytes bytes) {
    const Status written = co_await mount->Write(*handle, 0, bytes);
    EXPECT_TRUE(written.ok()) << written;
  }
  static Task Open(SimMount* mount, client::HandlePtr* handle) {
    const auto found = co_await mount->Lookup(mount->root(), "f");
    EXPECT_TRUE(found.ok() && found->inode.value != 0) << found.status();
    const auto opened = co_await mount->Open(found->inode);
    EXPECT_TRUE(opened.ok()) << opened.status();
    *handle = *opened;
  }
  static Task OpenInode(SimMount* mount, InodeId inode, client::HandlePtr* handle) {
    const auto opened = co_await mount->Open(inode);
    EXPECT_TRUE(opened.ok()) << opened.status();
    *handle = *opened;
  }
  static Task SetXattr(SimMount* mount, InodeId inode, std::string name, std::string value) {
    const Status set = co_await mount->SetXattr(inode, name, value);
    EXPECT_TRUE(set.ok()) << set;
  }
  static Task GetXattr(SimMount* mount, InodeId inode, std::string name, std::string* value) {
    const auto got = co_await mount->GetXattr(inode, name);
    EXPECT_TRUE(got.ok()) << got.status();
    if (got.ok()) *value = *got;
  }
  static Task Sync(SimMount* mount, const client::HandlePtr* handle) {
    const Status synced = co_await mount->Sync(*handle);
    EXPECT_TRUE(synced.ok()) << synced;
  }
  static Task SyncUnsure(SimMount* mount, const client::HandlePtr* handle, Status* synced) {
    *synced = co_await mount->Sync(*handle);
  }
  static Task CutUnsure(SimMount* mount, const client::HandlePtr* handle) {
    (void)co_await mount->Truncate(*handle, 1000);
  }
  static Task Close(SimMount* mount, client::HandlePtr* handle) {
    const Status closed = co_await mount->Close(*handle);
    EXPECT_TRUE(closed.ok()) << closed;
    handle->reset();
  }
  static Task Read(SimMount* mount, const client::HandlePtr* handle, Bytes* bytes) {
    const auto read = co_await mount->Read(*handle, 0, 1 << 20);
    EXPECT_TRUE(read.ok()) << read.status();
    *bytes = *read;
  }

  testing::ManualClock clock_;
  ScopedSeeds seeds_{1};
  Prng prng_{1};
  testing::SimNetwork network_{clock_, 1};
  World world_{clock_, network_, prng_};
  SimMds mds_{world_};
  std::array<std::unique_ptr<SimOsd>, kOsds> osds_;
  SimMount first_{world_, "first"};
  SimMount second_{world_, "second"};
  Task story_;
};

// What the mount is told of its own attributes is answered before it is durable, and the MDS dies
// right behind that: the mount asks for it again of the next one, before others look.
TEST_F(RestartTest, AnAttributeThatWasAnsweredEarlyOutlivesTheMds) {
  const InodeId root = first_.root();
  std::string value;
  ASSERT_TRUE(Finish(SetXattr(&first_, root, "user.kept", "old")));
  network_.RunFor(2s);
  EXPECT_TRUE(first_.IsDurable(first_.last_order()));
  ASSERT_TRUE(Finish(SetXattr(&first_, root, "user.kept", "new")));
  ASSERT_TRUE(Finish(SetXattr(&first_, root, "user.more", "more")));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  RestartMds();
  ASSERT_TRUE(Finish(GetXattr(&second_, root, "user.kept", &value)));
  EXPECT_EQ(value, "new");
  ASSERT_TRUE(Finish(GetXattr(&second_, root, "user.more", &value)));
  EXPECT_EQ(value, "more");
}

// The accident: the new MDS heard that the session was given back before the mount had repeated
// what it kept.
TEST_F(RestartTest, AnUnmountWhileTheMdsIsDownLosesNoName) {
  const InodeId root = first_.root();
  ASSERT_TRUE(Finish(Make(&first_, root, "lease")));  // the first of which is durable at once
  ASSERT_TRUE(Finish(Make(&first_, root, "d")));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  mds_.Crash();
  world_.After(100ms, [this] { EXPECT_TRUE(mds_.Boot().ok()); });
  ASSERT_TRUE(Finish(Unmount(&first_)));
  first_.Crash();
  InodeId found;
  ASSERT_TRUE(Finish(Lookup(&second_, root, "d", &found)));
  EXPECT_NE(found.value, 0u);
}

// Nothing of it goes to OSDs before its name is durable again, which waits for a mount that never
// comes back. Who looks then came to see a file of no bytes.
TEST_F(RestartTest, WhatWasClosedIsSeenAfterItsNameHasBeenRepeated) {
  SimMount third(world_, "third");
  ASSERT_TRUE(Finish(Mount(&third)));
  ASSERT_TRUE(Finish(Make(&third, third.root(), "d")));
  InodeId directory;
  ASSERT_TRUE(Finish(Lookup(&third, third.root(), "d", &directory)));
  network_.RunFor(10s);  // of a directory that two of them change all is durable at once
  ASSERT_TRUE(Finish(Make(&third, directory, "e")));
  client::HandlePtr first, mine, theirs;
  ASSERT_TRUE(Finish(Make(&first_, first_.root(), "lease")));  // the first of which is durable
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));       // so is that of a writer
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  ASSERT_TRUE(Finish(Write(&first_, &mine, Bytes(5000, 'a'))));
  ASSERT_TRUE(Finish(Close(&first_, &mine)));
  third.Crash();
  RestartMds();
  ASSERT_TRUE(Finish(Open(&second_, &theirs), 60s));
  Bytes bytes;
  ASSERT_TRUE(Finish(Read(&second_, &theirs, &bytes)));
  EXPECT_EQ(bytes, Bytes(5000, 'a'));
}

// What was closed before its creation was durable is open for the new MDS, which makes it again.
TEST_F(RestartTest, WhatWasReleasedBeforeItWasDurableIsReleasedAgain) {
  client::HandlePtr first, mine;
  ASSERT_TRUE(Finish(Make(&first_, first_.root(), "lease")));  // the first of which is durable
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));       // so is that of a writer
  ASSERT_TRUE(Finish(Close(&first_, &first)));
  network_.RunFor(1s);
  ASSERT_TRUE(mds_.core().names().SessionsWithOpenFiles().empty());
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  ASSERT_TRUE(Finish(Close(&first_, &mine)));
  network_.RunFor(300ms);
  EXPECT_TRUE(mds_.core().names().SessionsWithOpenFiles().empty());
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  RestartMds();
  network_.RunFor(5s);
  EXPECT_TRUE(mds_.core().names().SessionsWithOpenFiles().empty());
}

// As is what was durable when the MDS died, and the mount had not heard of that: the answer that
// was kept opens it again.
TEST_F(RestartTest, WhatWasReleasedWhenItWasDurableIsReleasedAgain) {
  client::HandlePtr first, mine;
  ASSERT_TRUE(Finish(Make(&first_, first_.root(), "lease")));
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));
  ASSERT_TRUE(Finish(Close(&first_, &first)));
  network_.RunFor(1s);
  ASSERT_TRUE(mds_.core().names().SessionsWithOpenFiles().empty());
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  ASSERT_TRUE(Finish(Close(&first_, &mine)));
  const uint64_t order = first_.last_order();
  const auto durable = [&] { return mds_.core().names().durable_order() >= order; };
  ASSERT_TRUE(network_.RunUntil(durable, 5s));
  EXPECT_TRUE(mds_.core().names().SessionsWithOpenFiles().empty());
  EXPECT_FALSE(first_.IsDurable(order)) << "there would be nothing to repeat";
  RestartMds();
  network_.RunFor(10s);
  EXPECT_TRUE(mds_.core().names().SessionsWithOpenFiles().empty());
}

// The mount let go of what it had removed, and the removal is repeated: the new MDS keeps it again.
TEST_F(RestartTest, WhatWasRemovedAndLetGoIsLetGoAgain) {
  client::HandlePtr first, mine;
  ASSERT_TRUE(Finish(Make(&first_, first_.root(), "lease")));
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  ASSERT_TRUE(Finish(Write(&first_, &mine, Bytes(5000, 'a'))));
  ASSERT_TRUE(Finish(Close(&first_, &mine)));
  network_.RunFor(5s);
  InodeId found;
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "f", &found)));  // it stays for that one
  network_.RunFor(3s);
  ASSERT_TRUE(Finish(Remove(&first_, first_.root(), "f")));
  network_.RunFor(300ms);
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  RestartMds();
  network_.RunFor(30s);
  CheckReport names;
  ASSERT_TRUE(mds::CheckNamespace(mds_.disk(), {}, &names).ok());
  EXPECT_EQ(names.Fact("orphans"), 0u);
}

// Goal: what is asked back of its own accord costs nobody his files. The mount is cut off as it is
// about to give back the lease on what it has made again, for less than its session lasts.
TEST_F(RestartTest, WhoMadeAFileAgainMayBeSilentWhileNobodyWaitsForIt) {
  client::HandlePtr first, mine;
  ASSERT_TRUE(Finish(Make(&first_, first_.root(), "lease")));  // the first of which is durable
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));       // so is that of a writer
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  ASSERT_TRUE(Finish(Write(&first_, &mine, Bytes(5000, 'a'))));
  bool silent = false;
  network_.SetTap([&](const auto& passing, net::Message* message) {
    if (silent || passing.from != "first" || MethodOf(*message) != wire::MDS_YIELD) return true;
    silent = true;
    CutOff("first");
    return false;
  });
  RestartMds();
  ASSERT_TRUE(network_.RunUntil([&] { return silent; }, 5s));
  network_.RunFor(5500ms);
  EXPECT_TRUE(mds_.core().keeper().map()->fences.empty()) << "nobody waited";
  network_.Heal();
  ASSERT_TRUE(Finish(Sync(&first_, &mine)));
  client::HandlePtr theirs;
  Bytes bytes;
  ASSERT_TRUE(Finish(Open(&second_, &theirs)));
  ASSERT_TRUE(Finish(Read(&second_, &theirs, &bytes)));
  EXPECT_EQ(bytes, Bytes(5000, 'a'));
}

// The accident: the mount died when its request had reached the new MDS and nothing was repeated.
// When the MDS waited no longer for the mount the request was carried out, and what the mount had
// been told before was lost.
TEST_F(RestartTest, WhatComesBehindLostNamesIsNotDoneWithoutThem) {
  const InodeId root = first_.root();
  ASSERT_TRUE(Finish(Make(&first_, root, "lease")));  // the first of which is durable at once
  ASSERT_TRUE(Finish(Make(&first_, root, "told")));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  mds_.Crash();
  Task under_way = MakeUnheard(&first_, root, "under way");
  under_way.Start();
  bool arrived = false;
  bool repeated = false;
  network_.SetOnArrival([&](const auto& passing, const net::Message& message) {
    if (arrived || passing.from != "first" || passing.to != "mds") return;
    repeated = repeated || MethodOf(message) == wire::MDS_REPLAY;
    arrived = MethodOf(message) == wire::MDS_MKNOD;
    if (arrived) world_.After(Duration(0), [this] { first_.Crash(); });  // when the MDS has it
  });
  ASSERT_TRUE(mds_.Boot().ok());
  ASSERT_TRUE(network_.RunUntil([&] { return arrived; }, 5s)) << "there is nothing to refuse";
  EXPECT_FALSE(repeated) << "nothing would be lost";
  network_.RunFor(20s);
  InodeId told, behind_it;
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "told", &told)));
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "under way", &behind_it)));
  EXPECT_EQ(told.value, 0u) << "there would be nothing to lose";
  EXPECT_EQ(behind_it.value, 0u);
}

// The accident: the mount was only cut off. The refusal did not reach it, it sent the request again
// as soon as it could, before it opened its session, and then it was carried out.
TEST_F(RestartTest, WhatIsSentAgainBehindLostNamesIsNotDoneWithoutThem) {
  const InodeId root = first_.root();
  ASSERT_TRUE(Finish(Make(&first_, root, "lease")));
  ASSERT_TRUE(Finish(Make(&first_, root, "told")));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  CutOff("first");
  Task under_way = MakeUnheard(&first_, root, "under way");
  under_way.Start();
  RestartMds();
  network_.RunFor(20s);
  EXPECT_FALSE(under_way.done());
  network_.Heal();
  ASSERT_TRUE(network_.RunUntil([&] { return under_way.done(); }, 20s));
  InodeId told, behind_it;
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "told", &told)));
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "under way", &behind_it)));
  EXPECT_EQ(told.value, 0u) << "there would be nothing to lose";
  EXPECT_EQ(behind_it.value, 0u);
  network_.RunFor(5s);  // it has heard of that, and goes on
  ASSERT_TRUE(Finish(Make(&first_, root, "later")));
}

// The accident: the session had ended, with all that it was told on the medium, before the MDS
// died. The next one refused to hear of it, and the mount told its processes that names were lost.
TEST_F(RestartTest, WhoseSessionEndedBeforeTheMdsDiedHasLostNothing) {
  const InodeId root = first_.root();
  ASSERT_TRUE(Finish(Make(&first_, root, "lease")));
  ASSERT_TRUE(Finish(Make(&first_, root, "told")));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  CutOff("first");
  network_.RunFor(2 * kLease);
  EXPECT_TRUE(mds_.core().names().Keepers(/*given_up=*/false).size() == 1)
      << "the session has not ended";
  RestartMds();
  network_.Heal();
  network_.RunFor(10s);
  EXPECT_FALSE(first_.lost_names());
  InodeId told;
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "told", &told)));
  EXPECT_NE(told.value, 0u);
  ASSERT_TRUE(Finish(Make(&first_, root, "later")));
}

// The accident: what was still to be committed came to an MDS that had gone on without the mount,
// and was answered: an fsync told of names that were lost as if they were there.
TEST_F(RestartTest, AnFsyncThatIsAnsweredTellsOfLostNames) {
  const InodeId root = first_.root();
  client::HandlePtr first, mine;
  ASSERT_TRUE(Finish(Make(&first_, root, "lease")));      // the first of which is durable
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));  // so is that of a writer
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to lose";
  CutOff("first");
  Status synced;
  Task sync = SyncUnsure(&first_, &mine, &synced);
  sync.Start();
  RestartMds();
  network_.RunFor(20s);
  EXPECT_FALSE(sync.done());
  network_.Heal();
  ASSERT_TRUE(network_.RunUntil([&] { return sync.done(); }, 20s));
  InodeId found;
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "f", &found)));
  EXPECT_EQ(found.value, 0u) << "it is not lost";
  EXPECT_FALSE(synced.ok());
}

// The accident: the number of a file that was lost was given to another one. The mount that had
// made the lost one did not know yet, and cut the other one off.
TEST_F(RestartTest, TheNumberOfALostFileIsNobodyElses) {
  client::HandlePtr first, mine;
  std::array<client::HandlePtr, 3> theirs;
  ASSERT_TRUE(Finish(Make(&first_, first_.root(), "lease")));  // the first of which is durable
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));       // so is that of a writer
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to lose";
  CutOff("first");
  RestartMds();
  network_.RunFor(20s);
  for (size_t i = 0; i < theirs.size(); ++i) {
    ASSERT_TRUE(Finish(Create(&second_, &theirs[i], "theirs" + std::to_string(i))));
    ASSERT_TRUE(Finish(Write(&second_, &theirs[i], Bytes(5000, 'c'))));
    ASSERT_TRUE(Finish(Sync(&second_, &theirs[i])));
  }
  network_.Heal();
  ASSERT_TRUE(Finish(CutUnsure(&first_, &mine)));
  SimMount third(world_, "third");
  ASSERT_TRUE(Finish(Mount(&third)));
  for (const client::HandlePtr& handle : theirs) {
    client::HandlePtr again;
    Bytes bytes;
    ASSERT_TRUE(Finish(OpenInode(&third, handle->inode->id(), &again)));
    ASSERT_TRUE(Finish(Read(&third, &again, &bytes)));
    EXPECT_EQ(bytes, Bytes(5000, 'c'));
  }
  third.Crash();
}

// The accident: the MDS died when it had fenced a mount and not dropped it yet. The next one waited
// for what the mount had to repeat, and refused that for ever, as it was asked under an old map.
TEST_F(RestartTest, AFencedMountCanRepeatWhatItMade) {
  client::HandlePtr first, mine;
  ASSERT_TRUE(Finish(Create(&first_, &first, "first")));
  ASSERT_TRUE(Finish(Sync(&first_, &first)));  // the next MDS knows that it may write
  ASSERT_TRUE(Finish(Create(&first_, &mine)));
  EXPECT_FALSE(first_.IsDurable(first_.last_order())) << "there would be nothing to repeat";
  CutOff("first");
  RestartMds();
  const auto fenced = [this] { return !mds_.core().keeper().map()->fences.empty(); };
  ASSERT_TRUE(network_.RunUntil(fenced, 10s));
  network_.Heal();
  RestartMds();
  InodeId found;
  ASSERT_TRUE(Finish(Lookup(&second_, second_.root(), "f", &found)));
  EXPECT_EQ(found, mine->inode->id());
}

// A descriptor that was opened before the eviction cuts nothing off that others wrote since.
TEST_F(RestartTest, AFencedMountDoesNotCutOffWhatOthersWrote) {
  client::HandlePtr mine, theirs;
  ASSERT_NO_FATAL_FAILURE(CutOffWhileItHolds(&mine));
  ASSERT_TRUE(Finish(Open(&second_, &theirs)));
  ASSERT_TRUE(Finish(Write(&second_, &theirs, Bytes(5000, 'c'))));
  ASSERT_TRUE(Finish(Sync(&second_, &theirs)));
  Task cut = CutUnsure(&first_, &mine);  // not heard of the eviction yet
  cut.Start();
  network_.Heal();
  ASSERT_TRUE(network_.RunUntil([&] { return cut.done(); }, 20s));
  network_.RunFor(5s);
  Bytes bytes;
  ASSERT_TRUE(Finish(Read(&second_, &theirs, &bytes)));
  EXPECT_EQ(bytes, Bytes(5000, 'c'));
}

class CutOffWriterTest : public RestartTest, public ::testing::WithParamInterface<Duration> {};

// Others wait for reports for 2 s and the grace ends after 4 s; he is away for less than the one,
// than the other, and for longer than both.
TEST_P(CutOffWriterTest, DoesNotFlushOverWhatOthersWrote) {
  client::HandlePtr mine, theirs;
  ASSERT_NO_FATAL_FAILURE(CutOffWhileItHolds(&mine));
  RestartMds();
  world_.After(GetParam(), [this] { network_.Heal(); });
  ASSERT_TRUE(Finish(Open(&second_, &theirs)));
  ASSERT_TRUE(Finish(Write(&second_, &theirs, Bytes(5000, 'c'))));
  ASSERT_TRUE(Finish(Sync(&second_, &theirs)));
  network_.RunFor(20s);
  Bytes bytes;
  ASSERT_TRUE(Finish(Read(&second_, &theirs, &bytes)));
  EXPECT_EQ(bytes, Bytes(5000, 'c'));
}

INSTANTIATE_TEST_SUITE_P(Away, CutOffWriterTest, ::testing::Values(1s, 3s, 10s));

// The MDS counts an OSD that it does not hear as down, and as one that refuses what was fenced. The
// fenced mount may reach it all the same: nobody gets the file before the OSD has been heard.
TEST_F(RestartTest, AnOsdThatHearsOfNoFenceTakesNothingAfterOthersHaveTheFile) {
  const auto isolate_mds = [this] {
    network_.Cut("first", "mds");
    for (const auto& osd : osds_) network_.Cut("mds", osd->name());
  };
  client::HandlePtr mine, theirs;
  ASSERT_NO_FATAL_FAILURE(CutOffWhileItHolds(&mine));
  isolate_mds();
  bool reaches = false;
  world_.After(15s, [&] {
    network_.Heal();
    isolate_mds();
    reaches = true;
  });
  world_.After(25s, [this] { network_.Heal(); });
  ASSERT_TRUE(Finish(Open(&second_, &theirs), 60s));
  EXPECT_TRUE(reaches) << "the file was given away before the OSDs had been heard";
  ASSERT_TRUE(Finish(Write(&second_, &theirs, Bytes(5000, 'c'))));
  ASSERT_TRUE(Finish(Sync(&second_, &theirs)));
  network_.RunFor(20s);
  SimMount third(world_, "third");
  ASSERT_TRUE(Finish(Mount(&third)));
  ASSERT_TRUE(Finish(Open(&third, &theirs)));
  Bytes bytes;
  ASSERT_TRUE(Finish(Read(&third, &theirs, &bytes)));
  EXPECT_EQ(bytes, Bytes(5000, 'c'));
  theirs.reset();
  third.Crash();
}

}  // namespace
}  // namespace weir::crash
