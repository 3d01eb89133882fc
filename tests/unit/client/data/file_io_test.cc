// Goal: every request that a file's data makes is charged to whoever opened the file: reads and
// what is fetched ahead of them, writes and what is written back later. Method: OSDs that write
// down the class of each request.
#include "client/data/file_io.h"

#include <gtest/gtest.h>

#include <set>

#include "common/testing/manual_clock.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;
constexpr ClassId kWeb{16};
constexpr ClassId kBackup{17};
constexpr ClassId kGold{18};

class RecordingReporter final : public WriteReporter {
 public:
  [[nodiscard]] uint64_t map_epoch() const override { return epoch; }
  void ReportWrote(InodeId inode, const Inode::Report& report, bool /*commit*/,
                   std::function<void(Result<FileAttr>)> callback) override {
    charged.push_back(report.class_id);
    FileAttr attr;
    attr.inode = inode;
    attr.size = report.size_at_least;
    if (hold) {
      held.push_back([attr, callback = std::move(callback)] { callback(attr); });
    } else {
      callback(attr);
    }
  }
  void AskAttributes(InodeId /*inode*/, WriteCallback callback) override { callback(attributes()); }
  [[nodiscard]] uint64_t last_order() const override { return 0; }
  void Commit(uint64_t /*order*/, InodeId /*inode*/, WriteCallback callback) override {
    callback(Status::Ok());
  }
  void ReportAllocated(InodeId, const AllocatedReport& report, const Allocation&,
                       WriteCallback callback) override {
    allocated_under.push_back(report.epoch);
    callback(allocated);
  }
  void AskRoom(InodeId /*inode*/, ClassId /*class_id*/, uint64_t end,
               std::function<void(Result<uint64_t>)> callback) override {
    ++asked;
    if (end > room) return callback(Status(ErrorCode::kQuota, "full"));
    callback(end);
  }
  uint64_t epoch = 1;
  std::vector<uint64_t> allocated_under;
  Status allocated;
  std::function<Status()> attributes;  // what comes of asking for them
  std::vector<ClassId> charged;
  bool hold = false;
  std::vector<std::function<void()>> held;
  uint64_t room = UINT64_MAX;
  int asked = 0;
};

class FileIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    osds_.immediate = true;
    Install(1001, "web");
    FileAttr attr;
    attr.inode = InodeId(5);
    attr.version = 1;
    attr.size = 64 * kMiB;
    attr.layout = LayoutOf(kMiB, 1, 4 * kMiB);
    inode_ = inodes_.Lookup(InodeId(5));
    inode_->Update(attr);
  }
  void Install(uint32_t uid, const std::string& class_name) {
    auto map = std::make_shared<ClusterMap>(*MapOf(1, ++epoch_));
    for (const auto& [id, name] :
         {std::pair(kWeb, "web"), std::pair(kBackup, "backup"), std::pair(kGold, "gold")}) {
      map->classes[id].spec.id = id;
      map->classes[id].spec.name = name;
    }
    ClassRule rule;
    rule.number = 1;
    rule.uid = uid;
    rule.class_name = class_name;
    map->rules.push_back(rule);
    classes_.SetMap(map);
    objects_.SetMap(map);
  }
  HandlePtr Open(uid_t uid, bool direct = false) {
    return std::make_shared<Handle>(inode_, classes_.Open(uid, uid, {}, 0, uid + 10'000),
                                    direct ? O_RDWR | O_DIRECT : O_RDWR);
  }
  void Read(const HandlePtr& handle, uint64_t offset, uint64_t length) {
    files_.Read(handle, offset, length,
                [](const Result<Segments>& data) { EXPECT_TRUE(data.ok()); });
  }
  void Write(const HandlePtr& handle, uint64_t offset, uint64_t length) {
    const std::vector<uint8_t> data(length, 'x');
    files_.Write(handle, offset, Buffer::Borrowed(data), {},
                 [](const Status& status) { EXPECT_TRUE(status.ok()); });
  }
  void Sync() {
    bool synced = false;
    files_.Sync(inode_, true, [&](const Status& status) { synced = status.ok(); });
    EXPECT_TRUE(synced);
  }
  // The classes of what was sent since.
  std::multiset<ClassId> Charged() { return std::exchange(osds_.charged, {}); }

  testing::ManualClock clock_;
  FakeOsds osds_;
  uint64_t epoch_ = 0;
  ObjectIo objects_{clock_, osds_, {}};
  InodeTable inodes_;
  CallerClasses classes_{{"host:1", ""},
                         [](pid_t, uid_t) { return std::string(); },
                         [](pid_t, uid_t) { return std::string(); }};
  RecordingReporter reporter_;
  FileLeases leases_{clock_, true};
  FileIo files_{clock_, objects_, inodes_, classes_, leases_, reporter_, {}};
  InodePtr inode_;
};

// What nobody waits for says so, and all of it says whose it is.
TEST_F(FileIoTest, RequestsNameTheOpenerAndTheirLane) {
  using Flows = std::set<std::pair<uint32_t, uint64_t>>;
  const HandlePtr web = Open(1001);
  for (uint64_t i = 0; i < 8; ++i) Read(web, i * 4096, 4096);
  EXPECT_EQ(osds_.flows, (Flows{{1001, 11'001}}));
  EXPECT_GT(osds_.lanes[Lane::kInteractive], 0);
  EXPECT_GT(osds_.lanes[Lane::kBackground], 0) << "nothing was fetched ahead";
  osds_.lanes.clear();
  osds_.flows.clear();
  Write(Open(1002), 0, 8192);
  Sync();
  EXPECT_EQ(osds_.lanes, (std::map<Lane, int>{{Lane::kInteractive, 1}})) << "somebody waits";
  Write(Open(1002), 0, 8192);
  clock_.Advance(5s);
  files_.Tick();
  EXPECT_EQ(osds_.lanes[Lane::kBackground], 1) << "it has only grown old";
  EXPECT_EQ(osds_.flows, (Flows{{1002, 11'002}}));
}

// The MDS gives the files of an evicted mount to others, who may have cut off what it kept: it must
// not hear of that under the map that tells of the eviction.
TEST_F(FileIoTest, WhatWasKeptBeforeAnEvictionIsNotReportedBehindIt) {
  const RangeChange keep{.offset = 0, .length = kMiB, .allocate = true};
  Status answer;
  const auto ask = [&] {
    answer = Status(ErrorCode::kTimedOut, "none yet");
    files_.Allocate(Open(1001), keep, [&](const Status& status) { answer = status; });
  };
  ask();
  EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_EQ(reporter_.allocated_under, std::vector<uint64_t>{1});
  reporter_.allocated = {ErrorCode::kStaleEpoch, "the MDS has evicted it"};
  ask();
  EXPECT_EQ(answer.code(), ErrorCode::kStale);

  osds_.immediate = false;
  reporter_.allocated_under.clear();
  ask();
  classes_.Fence();
  reporter_.epoch = 2;
  osds_.AnswerAll();
  EXPECT_EQ(answer.code(), ErrorCode::kStale);
  EXPECT_TRUE(reporter_.allocated_under.empty());
}

TEST_F(FileIoTest, ReadsAndWhatIsFetchedAheadBelongToTheOpener) {
  const HandlePtr web = Open(1001);
  constexpr uint64_t kRead = 128 << 10;
  for (uint64_t i = 0; i < 8; ++i) Read(web, i * kRead, kRead);
  const auto charged = Charged();
  EXPECT_GT(charged.size(), 4u) << "nothing was fetched ahead";
  EXPECT_EQ(charged.count(kWeb), charged.size());
  Read(Open(1002), 0, 4096);
  EXPECT_EQ(Charged(), std::multiset<ClassId>{kBestEffort});
}

TEST_F(FileIoTest, BufferedWritesLeaveInTheNameOfWhoWroteThem) {
  Write(Open(1001), 0, 4096);
  Write(Open(1002), 4096, 4096);
  EXPECT_TRUE(Charged().empty());
  clock_.Advance(5s);
  files_.Tick();
  EXPECT_EQ(Charged(), (std::multiset<ClassId>{kBestEffort, kWeb}));
}

// Goal: write(2) hears that there is no room, and not fsync alone. Method: the OSD refuses what was
// answered before; what follows is answered as it is.
TEST_F(FileIoTest, AFileThatFoundNoRoomIsStoredBeforeItsWritesAreAnswered) {
  osds_.immediate = false;
  for (const ErrorCode code : {ErrorCode::kNoSpace, ErrorCode::kQuota}) {
    const HandlePtr handle = Open(1001);
    std::vector<ErrorCode> heard;
    const auto write = [&](uint64_t offset, uint64_t length) {
      const std::vector<uint8_t> data(length, 'x');
      files_.Write(handle, offset, Buffer::Borrowed(data), {},
                   [&](const Status& status) { heard.push_back(status.code()); });
    };
    write(0, kMiB);  // leaves at once
    EXPECT_EQ(heard, std::vector{ErrorCode::kOk});
    osds_.Fail(0, code);

    write(kMiB, 4096);
    write(kMiB + 4096, 4096);
    EXPECT_EQ(heard.size(), 1u) << "answered before it was stored";
    osds_.Fail(1, code);
    osds_.Fail(0, code);
    write(kMiB, 4096);
    osds_.Fail(0, code);
    EXPECT_EQ(heard, (std::vector{ErrorCode::kOk, code, code, code}));

    write(kMiB, 4096);
    osds_.Answer(0);
    write(kMiB + 4096, 4096);
    EXPECT_TRUE(osds_.flights.empty()) << "there is room, and it waits for nothing";
    EXPECT_EQ(heard.size(), 6u);
    EXPECT_EQ(heard.back(), ErrorCode::kOk);

    ErrorCode synced = ErrorCode::kOk;
    files_.Fsync(handle, false, [&](const Status& status) { synced = status.code(); });
    osds_.AnswerAll();
    EXPECT_EQ(synced, code) << "what was lost";
  }
}

// Goal: what write(2) and close(2) were told is there never turns out to have no room. Method: an
// OSD that says how much it still takes.
TEST_F(FileIoTest, HoldsNoMoreThanHalfOfWhatTheDisksStillTake) {
  osds_.immediate = false;
  const HandlePtr handle = Open(1001);
  int heard = 0;
  const auto write = [&](uint64_t offset, uint64_t length) {
    const std::vector<uint8_t> data(length, 'x');
    files_.Write(handle, offset, Buffer::Borrowed(data), {}, [&](const Status& status) {
      EXPECT_TRUE(status.ok());
      ++heard;
    });
  };
  write(0, kMiB);  // leaves at once
  osds_.free_bytes = kMiB;
  osds_.Answer(0);
  write(kMiB, 256 * 1024);
  write(kMiB + 256 * 1024, 256 * 1024);
  EXPECT_EQ(heard, 3) << "there is room for all of it";
  EXPECT_TRUE(osds_.flights.empty());

  write(8 * kMiB, 4096);
  ASSERT_EQ(osds_.flights.size(), 1u) << "what is held goes first";
  EXPECT_EQ(osds_.flights[0].op.length, 512u * 1024);
  osds_.Answer(0);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_EQ(osds_.flights[0].op.length, 4096u);
  EXPECT_EQ(heard, 3) << "answered before it was stored";
  osds_.free_bytes = 64 * kMiB;
  osds_.Answer(0);
  EXPECT_EQ(heard, 4);
  write(9 * kMiB, 4096);
  EXPECT_EQ(heard, 5) << "there is room again";
  EXPECT_TRUE(osds_.flights.empty());
}

TEST_F(FileIoTest, WhatIsHeldHasItsPlaceBeforeSpaceIsKeptForAnother) {
  osds_.immediate = false;
  Write(Open(1001), 0, kMiB);
  osds_.free_bytes = 256 * kMiB;
  osds_.Answer(0);
  Write(Open(1001), kMiB, 4096);
  const InodePtr other = inodes_.Lookup(InodeId(6));
  FileAttr attr;
  attr.inode = InodeId(6);
  attr.version = 1;
  attr.layout = LayoutOf(kMiB, 1, 4 * kMiB);
  other->Update(attr);
  const auto allocate = [&](uint64_t length) {
    files_.Allocate(std::make_shared<Handle>(other, classes_.Open(1001, 1001, {}, 0, 1), O_RDWR),
                    {.length = length, .allocate = true}, [](const Status&) {});
  };
  allocate(kMiB);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_EQ(osds_.flights[0].op.verb, ObjectOp::Verb::kAllocate) << "there is room for both";
  osds_.AnswerAll();
  allocate(255 * kMiB);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_EQ(osds_.flights[0].op.verb, ObjectOp::Verb::kData);
  osds_.Answer(0);
  ASSERT_FALSE(osds_.flights.empty());
  EXPECT_EQ(osds_.flights[0].op.verb, ObjectOp::Verb::kAllocate);
}

// Goal: fdatasync(2) and O_DSYNC wait for the MDS only where the data could not be found without
// it.
// The accident: setxattr gave the file another layout, the attributes that follow from it could not
// be asked for, and what was written next lay where nobody else looks.
TEST_F(FileIoTest, ALayoutThatMayHaveChangedIsAskedForBeforeAnythingIsWritten) {
  const HandlePtr handle = Open(1001);
  FileAttr changed = inode_->attr();
  changed.version = 2;
  changed.layout = LayoutOf(64 << 10, 1, 64 << 10);
  int asked = 0;
  reporter_.attributes = [&]() -> Status {
    if (++asked == 1) return {ErrorCode::kTimedOut, "no answer"};
    inode_->Update(changed);
    return Status::Ok();
  };
  const auto write = [&] {
    Status ended(ErrorCode::kTimedOut, "not yet");
    files_.Write(handle, 64 << 10, Buffer::AlignedZeros(4096), {},
                 [&](const Status& status) { ended = status; });
    return ended.code();
  };
  const auto allocate = [&] {
    Status ended(ErrorCode::kTimedOut, "not yet");
    files_.Allocate(handle, {.offset = 128 << 10, .length = 4096, .allocate = true},
                    [&](const Status& status) { ended = status; });
    return ended.code();
  };
  const auto copy = [&] {
    ErrorCode ended = ErrorCode::kTimedOut;
    files_.Copy(handle, 0, handle, {.offset = 192 << 10, .length = 4096},
                [&](const Result<uint64_t>& copied) { ended = copied.code(); });
    return ended;
  };
  inode_->AskForLayout();
  EXPECT_EQ(write(), ErrorCode::kTimedOut);
  Sync();
  EXPECT_TRUE(osds_.objects.empty());
  EXPECT_EQ(write(), ErrorCode::kOk);
  Sync();
  EXPECT_TRUE(osds_.objects.contains({inode_->id(), 1}));
  EXPECT_EQ(write(), ErrorCode::kOk);
  EXPECT_EQ(asked, 2) << "it is known by now";
  inode_->AskForLayout();
  EXPECT_EQ(allocate(), ErrorCode::kOk);
  EXPECT_EQ(asked, 3);
  inode_->AskForLayout();
  EXPECT_EQ(copy(), ErrorCode::kOk);
  EXPECT_EQ(asked, 4);
}

TEST_F(FileIoTest, FdatasyncTellsTheMdsOfNothingButWhatTheDataNeeds) {
  const HandlePtr handle = Open(1001, true);
  const auto sync = [&](bool data_only) {
    const size_t before = reporter_.charged.size();
    bool synced = false;
    files_.Fsync(handle, data_only, [&](const Status& status) { synced = status.ok(); });
    EXPECT_TRUE(synced);
    return reporter_.charged.size() - before;
  };
  FileAttr regular = inode_->attr();
  regular.mode = S_IFREG | 0644;
  regular.version = 2;
  inode_->Update(regular);
  osds_.grown = 4096;
  Write(handle, 0, 4096);
  EXPECT_EQ(sync(true), 1u) << "what space it takes";
  osds_.grown = 0;
  Write(handle, 0, 4096);
  EXPECT_EQ(sync(true), 0u) << "a time";
  EXPECT_TRUE(inode_->has_unreported());
  EXPECT_EQ(sync(false), 1u) << "fsync(2) keeps it";
  EXPECT_FALSE(inode_->has_unreported());

  HeldAttributes times;
  times.mtime_ns = 7;
  times.ctime_ns = 8;
  EXPECT_TRUE(files_.HoldAttributes(inode_, times, 0, kWeb));
  EXPECT_EQ(sync(true), 0u);
  HeldAttributes rights = times;
  rights.mode = 0600;
  EXPECT_TRUE(files_.HoldAttributes(inode_, rights, 0, kWeb));
  EXPECT_EQ(sync(true), 1u) << "who may read it";

  files_.Write(handle, 0, Buffer::AlignedZeros(4096), {.set_ids = true}, [](const Status&) {});
  EXPECT_EQ(sync(true), 0u) << "it has no set-id bits to lose";
}

TEST_F(FileIoTest, FdatasyncStoresWhatIsBufferedAndTellsHowLongTheFileIs) {
  const HandlePtr handle = Open(1001);
  osds_.grown = 0;
  Write(handle, 0, 4096);
  EXPECT_TRUE(Charged().empty());
  files_.Fsync(handle, true, [](const Status& status) { EXPECT_TRUE(status.ok()); });
  EXPECT_EQ(Charged(), std::multiset<ClassId>{kWeb});
  EXPECT_EQ(reporter_.charged.size(), 1u) << "what space it may take";
  Write(handle, 64 * kMiB, 4096);
  files_.Fsync(handle, true, [](const Status& status) { EXPECT_TRUE(status.ok()); });
  EXPECT_EQ(reporter_.charged.size(), 2u) << "its end has moved";
}

TEST_F(FileIoTest, AnFsyncBySomebodyElseDoesNotChangeWhoPays) {
  Write(Open(1001), 0, 4096);
  Sync();  // it is the file that is synced; the caller does not matter
  EXPECT_EQ(Charged(), std::multiset<ClassId>{kWeb});
  EXPECT_EQ(reporter_.charged, std::vector<ClassId>{kWeb});
}

TEST_F(FileIoTest, WritesThatPassThroughAreTheOpenersToo) {
  Write(Open(1001, true), 0, 2 * kMiB);
  EXPECT_EQ(Charged().count(kWeb), 1u);
  Write(Open(1001), 0, 4096);
  Write(Open(1002, true), 0, 4096);  // after what waits
  EXPECT_EQ(Charged(), (std::multiset<ClassId>{kBestEffort, kWeb}));
}

TEST_F(FileIoTest, WhatWaitsFollowsTheRulesAndTagsOfItsTime) {
  const HandlePtr web = Open(1001);
  Write(web, 0, 4096);
  Install(1001, "backup");
  Sync();
  EXPECT_EQ(Charged(), std::multiset<ClassId>{kBackup});
  Write(web, 0, 4096);
  inode_->set_tag_class(kGold);
  Sync();
  EXPECT_EQ(Charged(), std::multiset<ClassId>{kGold});
}

TEST_F(FileIoTest, ACopyReadsAsOneAndWritesAsTheOther) {
  // copy_file_range reaches a mount as a read of the one handle and a write of the other.
  Read(Open(1001, true), 0, 4096);
  Write(Open(1002, true), kMiB, 4096);
  EXPECT_EQ(Charged(), (std::multiset<ClassId>{kBestEffort, kWeb}));
}

TEST_F(FileIoTest, WhatAKilledProcessStillWaitsForIsLetGo) {
  osds_.immediate = false;
  const auto dead = std::make_shared<std::atomic<bool>>(false);
  std::vector<ErrorCode> ends;
  for (int i = 0; i < 20; ++i) {
    files_.Read(
        Open(1001, true), 0, kMiB,
        [&](const Result<Segments>& data) { ends.push_back(data.code()); }, dead);
  }
  ASSERT_EQ(osds_.flights.size(), 8u) << "the window";
  *dead = true;
  files_.DropAbandoned();
  EXPECT_EQ(ends, std::vector<ErrorCode>(12, ErrorCode::kCancelled));
  osds_.AnswerAll();
  EXPECT_EQ(osds_.sent, 8u);
}

TEST_F(FileIoTest, WritesBeyondTheRoomOfTheirClassFail) {
  auto map = std::make_shared<ClusterMap>(*MapOf(1, ++epoch_));
  map->classes[kGold].spec.id = kGold;
  map->classes[kGold].capacity_bytes = 66 * kMiB;
  classes_.SetMap(map);
  inode_->set_tag_class(kGold);
  reporter_.room = 66 * kMiB;
  const HandlePtr handle = Open(1001);
  const std::vector<uint8_t> data(kMiB, 'x');
  std::vector<ErrorCode> codes;
  const auto write = [&](uint64_t offset) {
    files_.Write(handle, offset, Buffer::Borrowed(data), {},
                 [&](const Status& status) { codes.push_back(status.code()); });
  };
  write(0);
  EXPECT_EQ(reporter_.asked, 0) << "an overwrite needs no room";
  write(64 * kMiB);
  write(65 * kMiB);
  write(66 * kMiB);
  EXPECT_EQ(reporter_.asked, 3);
  using enum ErrorCode;
  EXPECT_EQ(codes, (std::vector{kOk, kOk, kOk, kQuota}));
  EXPECT_EQ(inode_->size(), 66 * kMiB);
  inode_->set_tag_class(kWeb);
  write(66 * kMiB);
  EXPECT_EQ(codes.back(), kOk) << "a class without a capacity asks nobody";
  EXPECT_EQ(reporter_.asked, 3);
}

// A truncation is sent once the writes before it are reported: no report may still be on its way
// then, to be sent again behind it after a lost connection.
TEST_F(FileIoTest, ReportsOfAFileFollowOneAnother) {
  reporter_.hold = true;
  const HandlePtr handle = Open(1001);
  Write(handle, 0, 10);
  std::string ends;
  files_.Sync(inode_, false, [&](const Status&) { ends += "a"; });
  Write(handle, 10, 10);
  files_.Sync(inode_, true, [&](const Status&) { ends += "b"; });
  files_.Sync(inode_, true, [&](const Status&) { ends += "c"; });
  ASSERT_EQ(reporter_.held.size(), 1U);
  reporter_.held[0]();
  EXPECT_EQ(ends, "a");
  ASSERT_EQ(reporter_.held.size(), 2U);
  reporter_.held[1]();
  EXPECT_EQ(ends.size(), 3U);  // what the second reported was all that the third had to
  EXPECT_EQ(reporter_.held.size(), 2U);
}

}  // namespace
}  // namespace weir::client
