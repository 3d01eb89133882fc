// Writes of a mount that others share: with a lease they are buffered, without one they are stored
// and reported before they are answered; and what becomes of them when the mount is evicted.
#include <gtest/gtest.h>
#include <unistd.h>

#include "client/data/file_io.h"
#include "client/takeover/record_file.h"
#include "client/takeover/takeover_log.h"
#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr InodeId kFile{5};

class HeldReports final : public WriteReporter {
 public:
  [[nodiscard]] uint64_t map_epoch() const override {
    const uint64_t told = epoch;
    if (then) then();
    return told;
  }
  void ReportWrote(InodeId /*inode*/, const Inode::Report& report, bool /*commit*/,
                   std::function<void(Result<FileAttr>)> callback) override {
    epochs.push_back(report.epoch);
    sizes.push_back(report.size_at_least);
    modes.push_back(report.held.mode.value_or(0));
    held = [this, report, callback = std::move(callback)] {
      if (refusal.has_value()) return callback(Status(*refusal));
      FileAttr attr;
      attr.inode = kFile;
      attr.version = ++version;
      attr.size = report.size_at_least;
      attr.layout = LayoutOf(kMiB, 1, 4 * kMiB);
      callback(attr);
    };
  }
  [[nodiscard]] uint64_t last_order() const override { return 0; }
  void Commit(uint64_t /*order*/, WriteCallback callback) override { callback(Status::Ok()); }
  void ReportAllocated(InodeId, const AllocatedReport&, const Allocation&,
                       WriteCallback callback) override {
    callback(Status::Ok());
  }
  void AskRoom(InodeId /*inode*/, ClassId /*class_id*/, uint64_t end,
               std::function<void(Result<uint64_t>)> callback) override {
    callback(end);
  }
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> modes;   // told with them
  std::vector<uint64_t> epochs;  // as well
  uint64_t epoch = 1;
  std::function<void()> then;  // between that and what is made of it
  std::function<void()> held;
  std::optional<ErrorCode> refusal;
  uint64_t version = 1;
};

class SharedWriteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto map = MapOf(1);
    classes_.SetMap(map);
    objects_.SetMap(map);
    leases_.BeginSession(1, clock_.Now());
    FileAttr attr;
    attr.inode = kFile;
    attr.version = 1;
    attr.mode = S_IFREG | 0644;
    attr.layout = LayoutOf(kMiB, 1, 4 * kMiB);
    inode_ = inodes_.Lookup(kFile);
    inode_->Update(attr);
    handle_ = Open();
  }
  HandlePtr Open(int flags = O_RDWR) {
    return std::make_shared<Handle>(inode_, classes_.Open(1, 1, {}, 0), flags);
  }
  void Lease(bool unseen = false) {
    wire::EntryReply reply;
    reply.mutable_file_lease()->set_epoch(1);
    reply.mutable_file_lease()->set_write(true);
    reply.mutable_file_lease()->set_unseen(unseen);
    leases_.Learn(inode_, reply, leases_.Asked());
  }
  // How it ended, once it has.
  std::shared_ptr<std::optional<ErrorCode>> Write(const HandlePtr& handle, uint64_t offset) {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    const std::vector<uint8_t> data(100, 'x');
    handle->Changing(1);
    files_.Write(handle, offset, Buffer::Borrowed(data), {},
                 [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }
  bool SetMode(uint32_t mode) {
    HeldAttributes change;
    change.mode = mode;
    change.ctime_ns = clock_.WallNow().ns;
    return files_.HoldAttributes(inode_, change, 0, {});
  }
  bool GiveAway() {
    HeldAttributes change;
    change.uid = 7;
    change.ctime_ns = clock_.WallNow().ns;
    return files_.HoldAttributes(inode_, change, 0, {});
  }
  ErrorCode Sync() {
    std::optional<ErrorCode> ended;
    files_.Fsync(handle_, false, [&](const Status& status) { ended = status.code(); });
    return ended.value_or(ErrorCode::kTimedOut);
  }

  testing::ManualClock clock_;
  FakeOsds osds_;
  ObjectIo objects_{clock_, osds_, {}};
  InodeTable inodes_;
  CallerClasses classes_{{"mount", ""},
                         [](pid_t, uid_t) { return std::string(); },
                         [](pid_t, uid_t) { return std::string(); }};
  FileLeases leases_{clock_, false};
  HeldReports reporter_;
  FileIo files_{clock_, objects_, inodes_, classes_, leases_, reporter_, {}};
  InodePtr inode_;
  HandlePtr handle_;
};

TEST_F(SharedWriteTest, IsBufferedUnderALease) {
  Lease();
  EXPECT_EQ(*Write(handle_, 0), ErrorCode::kOk);
  EXPECT_EQ(osds_.sent, 0u);
  EXPECT_TRUE(reporter_.sizes.empty());
  EXPECT_EQ(inode_->size(), 100u);
}

TEST_F(SharedWriteTest, IsStoredAndReportedBeforeItIsAnsweredWithoutOne) {
  Lease();
  Write(handle_, 0);
  leases_.Revoke(inode_);
  const auto ended = Write(handle_, 100);
  ASSERT_EQ(osds_.flights.size(), 1u) << "what was buffered goes first";
  osds_.Answer(0);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_EQ(osds_.flights[0].op.offset, 100u);
  osds_.Answer(0);
  EXPECT_FALSE(ended->has_value());
  ASSERT_EQ(reporter_.sizes, std::vector<uint64_t>{200});
  reporter_.held();
  EXPECT_EQ(*ended, ErrorCode::kOk);
  EXPECT_FALSE(inode_->has_unreported());
}

TEST_F(SharedWriteTest, OfAnEvictedMountNothingGoesOutAnyMore) {
  Lease();
  Write(handle_, 0);
  leases_.Revoke(inode_);
  const auto through = Write(handle_, 200);  // sent: the buffered one before it
  ASSERT_EQ(osds_.flights.size(), 1u);
  classes_.Fence();
  objects_.DropFenced();
  files_.Evicted();
  objects_.SetMap(MapOf(1, 2));
  osds_.Fail(0, ErrorCode::kStaleEpoch);  // as it would be sent again under the new map
  objects_.Tick();
  EXPECT_TRUE(osds_.flights.empty());
  EXPECT_EQ(*through, ErrorCode::kStale);
  EXPECT_EQ(Sync(), ErrorCode::kStale) << "told once, of what was buffered";
  EXPECT_TRUE(reporter_.sizes.empty());
  EXPECT_EQ(inode_->size(), 0u);
  EXPECT_EQ(*Write(handle_, 0), ErrorCode::kStale) << "opened before";
  const auto again = Write(Open(), 0);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_EQ(osds_.flights[0].stamp.epoch, 2u);
  osds_.Answer(0);
  reporter_.held();
  EXPECT_EQ(*again, ErrorCode::kOk);
}

// The MDS knows of the eviction before the mount does.
TEST_F(SharedWriteTest, IsNotToldToBeSafeWhenTheReportComesAfterTheEviction) {
  reporter_.refusal = ErrorCode::kStaleEpoch;
  const auto ended = Write(handle_, 0);
  osds_.Answer(0);
  reporter_.held();
  EXPECT_EQ(*ended, ErrorCode::kStale);
  std::optional<ErrorCode> synced;
  files_.Fsync(handle_, false, [&](const Status& status) { synced = status.code(); });
  ASSERT_EQ(reporter_.sizes.size(), 2u) << "nothing of it is known to the MDS";
  reporter_.held();
  EXPECT_EQ(synced, ErrorCode::kStale);
  files_.Evicted();  // now it hears
  EXPECT_EQ(Sync(), ErrorCode::kStale);
  EXPECT_FALSE(inode_->has_unreported());
  EXPECT_EQ(inode_->size(), 0u);
}

// Goal: a report of what is lost never has the epoch of the map that tells of it. Method: the map
// comes when the epoch has just been read.
TEST_F(SharedWriteTest, AReportIsOfTheEpochUnderWhichNothingIsLost) {
  const auto ended = Write(handle_, 0);
  reporter_.then = [this] {
    reporter_.then = nullptr;
    classes_.Fence();
    files_.Evicted();
    reporter_.epoch = 2;
  };
  osds_.Answer(0);
  EXPECT_FALSE(reporter_.then);
  ASSERT_EQ(reporter_.epochs, std::vector<uint64_t>{});
  EXPECT_EQ(*ended, ErrorCode::kStale);
  const auto again = Write(Open(), 0);
  osds_.Answer(0);
  EXPECT_EQ(reporter_.epochs, std::vector<uint64_t>{2});
  reporter_.held();
  EXPECT_EQ(*again, ErrorCode::kOk);
}

TEST_F(SharedWriteTest, OfAFileThatIsGoneIsMissedByNobody) {
  reporter_.refusal = ErrorCode::kStale;
  const auto ended = Write(handle_, 0);
  osds_.Answer(0);
  reporter_.held();
  EXPECT_EQ(*ended, ErrorCode::kOk);
  EXPECT_FALSE(inode_->has_unreported());
}

TEST_F(SharedWriteTest, AReportThatWasWaitingWhenTheMountWasEvictedIsNotSent) {
  Lease();
  Write(handle_, 0);
  std::optional<ErrorCode> synced;
  files_.Fsync(handle_, false, [&](const Status& status) { synced = status.code(); });
  ASSERT_EQ(osds_.flights.size(), 1u);
  classes_.Fence();
  files_.Evicted();
  osds_.Answer(0);
  EXPECT_EQ(synced, ErrorCode::kStale);
  EXPECT_TRUE(reporter_.sizes.empty());
}

TEST_F(SharedWriteTest, AttributesAreHeldUnderALeaseAndToldBehindTheData) {
  EXPECT_FALSE(SetMode(0600)) << "others may look";
  Lease();
  Write(handle_, 0);
  ASSERT_TRUE(SetMode(0600));
  std::optional<ErrorCode> synced;
  files_.Fsync(handle_, false, [&](const Status& status) { synced = status.code(); });
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_TRUE(reporter_.sizes.empty());
  osds_.Answer(0);
  ASSERT_EQ(reporter_.modes, std::vector<uint32_t>{0600});
  EXPECT_EQ(reporter_.sizes, std::vector<uint64_t>{100});
  reporter_.held();
  EXPECT_EQ(synced, ErrorCode::kOk);
  EXPECT_FALSE(inode_->has_unreported());
}

// A name that is changed does not wait for the disks of somebody else's data.
TEST_F(SharedWriteTest, AttributesAreToldWithoutTheDataWhenSomebodyNeedsThem) {
  Lease();
  Write(handle_, 0);
  ASSERT_TRUE(SetMode(0600));
  bool told = false;
  files_.TellHeld([&] { told = true; });
  EXPECT_TRUE(osds_.flights.empty());
  ASSERT_EQ(reporter_.modes, std::vector<uint32_t>{0600});
  EXPECT_EQ(reporter_.sizes, std::vector<uint64_t>{0});
  ASSERT_TRUE(SetMode(0640)) << "while that is on its way";
  EXPECT_FALSE(told);
  reporter_.held();
  EXPECT_TRUE(told);
  files_.TellHeld(inode_, [] {});
  EXPECT_EQ(reporter_.modes.back(), 0640u);
  reporter_.held();
  EXPECT_FALSE(inode_->holds_attributes());
  EXPECT_TRUE(inode_->has_unreported()) << "the data";
  EXPECT_EQ(inode_->size(), 100u);
  told = false;
  files_.TellHeld([&] { told = true; });
  EXPECT_TRUE(told) << "nothing is left to tell";
  EXPECT_EQ(reporter_.modes.size(), 2u);
}

// Otherwise the kernel of another mount may know a name of it, and judge by the owner before.
TEST_F(SharedWriteTest, AnotherOwnerIsHeldOnlyOfWhatNobodyElseHasSeen) {
  Lease();
  EXPECT_FALSE(GiveAway());
  leases_.Revoke(inode_);
  Lease(true);
  EXPECT_TRUE(GiveAway());
  Lease();
  EXPECT_TRUE(GiveAway()) << "opened once more";
  leases_.BeginRelease(inode_->id());
  EXPECT_FALSE(GiveAway());
  leases_.EndRelease(inode_->id());
  Lease();
  EXPECT_FALSE(GiveAway()) << "others may have looked in between";
}

// Whoever has it open hears from the successor of this process that they were lost; by name nobody.
TEST_F(SharedWriteTest, WithASuccessorOnlyAttributesOfOpenFilesAreHeld) {
  const int state = *RecordFile::Create(1 << 16);
  const auto log = *TakeoverLog::Open(state, 7);
  FileIo::Options options;
  options.takeover = log.get();
  FileIo files{clock_, objects_, inodes_, classes_, leases_, reporter_, options};
  HeldAttributes change;
  change.mode = 0600;
  change.ctime_ns = 1;
  Lease();
  EXPECT_FALSE(files.HoldAttributes(inode_, change, 0, {}));
  inode_->AddWriter();
  EXPECT_TRUE(files.HoldAttributes(inode_, change, 0, {}));
  close(state);
}

class CloseTest : public SharedWriteTest {
 protected:
  // What the last close was told, once it was.
  std::shared_ptr<std::optional<ErrorCode>> Close() {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    files_.Close(handle_, [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }
  void WriteOne() {
    const std::vector<uint8_t> data(100, 'x');
    handle_->Changing(1);
    files_.Write(handle_, 0, Buffer::Borrowed(data), {},
                 [](const Status& status) { EXPECT_TRUE(status.ok()); });
  }
};

TEST_F(CloseTest, StoresWithAgeAndIsReleasedThen) {
  Lease();
  WriteOne();
  EXPECT_EQ(*Close(), ErrorCode::kOk);
  bool stored = false;
  files_.WhenStored(kFile, [&] { stored = true; });
  EXPECT_EQ(osds_.sent, 0u);
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  ASSERT_NE(reporter_.held, nullptr);
  EXPECT_FALSE(stored) << "the MDS does not know how long it is";
  reporter_.held();
  EXPECT_TRUE(stored);
  stored = false;
  files_.WhenStored(kFile, [&] { stored = true; });
  EXPECT_TRUE(stored) << "nothing is left";
}

TEST_F(CloseTest, ARenameWaitsForWhatItMoves) {
  const MadeName made{InodeId(1), "made"}, moved{InodeId(1), "moved"};
  Lease();
  inode_->Made(made);
  WriteOne();
  Close();
  EXPECT_TRUE(files_.HasClosed(made));
  EXPECT_FALSE(files_.HasClosed(moved));
  files_.Renamed(kFile, made, moved);
  EXPECT_FALSE(files_.HasClosed(made));
  EXPECT_TRUE(files_.HasClosed(moved));
  bool other = false, same = false;
  files_.StoreClosed(made, [&] { other = true; });
  EXPECT_TRUE(other);
  EXPECT_EQ(osds_.sent, 0u);
  files_.StoreClosed(moved, [&] { same = true; });
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(same);
  reporter_.held();
  EXPECT_TRUE(same);
  EXPECT_FALSE(files_.HasClosed(moved));
}

TEST_F(CloseTest, ARenameWaitsForWhatMayHaveThatName) {
  Lease();
  WriteOne();
  Close();
  bool stored = false;
  files_.StoreClosed(MadeName{InodeId(1), "any"}, [&] { stored = true; });
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  reporter_.held();
  EXPECT_TRUE(stored);
}

TEST_F(CloseTest, WhatWasCutToNothingIsStoredFromTheCloseOn) {
  Lease();
  FileAttr cut = inode_->attr();
  cut.size = 0;
  FileAttr full = cut;
  full.size = 10;
  inode_->Update(full);
  inode_->Resized(cut);
  WriteOne();
  EXPECT_EQ(*Close(), ErrorCode::kOk) << "nobody waits for it";
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  reporter_.held();
  EXPECT_FALSE(inode_->is_emptied());
}

TEST_F(CloseTest, OfWhatLostItsLastNameNothingIsStored) {
  Lease(true);
  WriteOne();
  Close();
  bool released = false;
  files_.WhenStored(kFile, [&] { released = true; });
  files_.Forgotten(kFile);
  EXPECT_TRUE(released);
  EXPECT_FALSE(inode_->has_unreported());
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  EXPECT_EQ(osds_.sent, 0u);
  EXPECT_EQ(reporter_.held, nullptr);
}

TEST_F(CloseTest, WhatIsOnItsWayArrivesBeforeTheFileIsReleased) {
  Lease(true);
  WriteOne();
  Close();
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  bool released = false;
  files_.WhenStored(kFile, [&] { released = true; });
  files_.Forgotten(kFile);
  EXPECT_FALSE(released);
  osds_.Answer(0);
  if (reporter_.held != nullptr) reporter_.held();
  EXPECT_TRUE(released);
}

TEST_F(CloseTest, WhatOthersHaveSeenIsStoredEvenWithoutAName) {
  Lease(false);
  WriteOne();
  Close();
  files_.Forgotten(kFile);
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  EXPECT_EQ(osds_.flights.size(), 1u) << "somebody may be about to open it";
}

TEST_F(CloseTest, WaitsAndBuffersNothingWhileAnOsdIsNearlyFull) {
  Lease();
  ClusterMap map;
  map.near_full = true;
  files_.SetMap(map);
  bool written = false;
  const std::vector<uint8_t> data(100, 'x');
  handle_->Changing(1);
  files_.Write(handle_, 0, Buffer::Borrowed(data), {}, [&](const Status&) { written = true; });
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_FALSE(written);
  osds_.Answer(0);
  EXPECT_TRUE(written);
  const auto ended = Close();
  EXPECT_FALSE(ended->has_value());
  reporter_.held();
  EXPECT_EQ(*ended, ErrorCode::kOk);
}

TEST_F(CloseTest, WhatIsClosedIsStoredWhenAnOsdSaysThatItIsNearlyFull) {
  Lease();
  WriteOne();
  EXPECT_EQ(*Close(), ErrorCode::kOk);
  EXPECT_TRUE(osds_.flights.empty());
  ClusterMap map;
  map.near_full = true;
  files_.SetMap(map);
  files_.Tick();
  EXPECT_EQ(osds_.flights.size(), 1u) << "others may fill it";
}

TEST_F(CloseTest, WaitsWithoutNewsOfTheMds) {
  Lease();
  WriteOne();
  clock_.Advance(std::chrono::seconds(3));
  const auto ended = Close();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(ended->has_value()) << "this mount may be cut off";
  reporter_.held();
  EXPECT_EQ(*ended, ErrorCode::kOk);
}

TEST_F(CloseTest, WaitsWithoutALease) {
  Lease();
  WriteOne();
  leases_.Revoke(inode_);
  const auto ended = Close();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(ended->has_value());
  reporter_.held();
  EXPECT_EQ(*ended, ErrorCode::kOk);
}

TEST_F(CloseTest, OfAnEvictedMountItIsReleasedAndTheNextCloseTells) {
  Lease();
  WriteOne();
  Close();
  bool released = false;
  files_.WhenStored(kFile, [&] { released = true; });
  classes_.Fence();
  objects_.DropFenced();
  files_.Evicted();
  EXPECT_TRUE(released);
  EXPECT_EQ(*Close(), ErrorCode::kStale);
  EXPECT_EQ(osds_.sent, 0u);
}

TEST_F(CloseTest, WaitsWhereAsked) {
  FileIo::Options options;
  options.sync_close = true;
  FileIo files{clock_, objects_, inodes_, classes_, leases_, reporter_, options};
  Lease();
  const std::vector<uint8_t> data(100, 'x');
  handle_->Changing(1);
  files.Write(handle_, 0, Buffer::Borrowed(data), {}, [](const Status&) {});
  std::optional<ErrorCode> ended;
  files.Close(handle_, [&](const Status& status) { ended = status.code(); });
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(ended.has_value());
  reporter_.held();
  EXPECT_EQ(ended, ErrorCode::kOk);
}

TEST_F(SharedWriteTest, AFailureIsToldAtCloseToThoseWhoWroteAndAtFsyncToAll) {
  Lease();
  const HandlePtr reader = Open(O_RDONLY), writer = Open();
  Write(handle_, 0);
  Write(writer, 1000);
  const auto told = [](const HandlePtr& handle, auto ask) {
    std::optional<ErrorCode> ended;
    ask(handle, [&ended](const Status& status) { ended = status.code(); });
    return ended.value_or(ErrorCode::kTimedOut);
  };
  const auto close = [this](const HandlePtr& handle, auto done) { files_.Close(handle, done); };
  const auto fsync = [this](const HandlePtr& handle, auto done) {
    files_.Fsync(handle, false, done);
  };
  inode_->RememberError(Status(ErrorCode::kIo, "of a write-back"));
  EXPECT_EQ(files_.ToldAtClose(*reader).code(), ErrorCode::kOk);
  EXPECT_EQ(files_.ToldAtClose(*handle_).code(), ErrorCode::kIo);
  EXPECT_EQ(files_.ToldAtClose(*handle_).code(), ErrorCode::kOk);
  EXPECT_EQ(told(writer, close), ErrorCode::kIo);
  std::optional<ErrorCode> synced;
  fsync(reader, [&synced](const Status& status) { synced = status.code(); });
  osds_.AnswerAll();
  ASSERT_TRUE(reporter_.held);
  reporter_.held();
  EXPECT_EQ(synced, ErrorCode::kIo);
  EXPECT_EQ(told(reader, fsync), ErrorCode::kOk);
  EXPECT_EQ(told(Open(), close), ErrorCode::kOk);
}

// What goes by the kernel's pages is durable when it is answered, also the size.
class AloneWriteTest : public SharedWriteTest {
 protected:
  void SetUp() override {
    SharedWriteTest::SetUp();
    direct_ = Open(O_RDWR | O_DIRECT);
  }
  std::shared_ptr<std::optional<ErrorCode>> WriteAlone(uint64_t offset) {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    const std::vector<uint8_t> data(100, 'x');
    alone_.Write(direct_, offset, Buffer::Borrowed(data), {},
                 [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }
  FileLeases always_{clock_, true};
  FileIo alone_{clock_, objects_, inodes_, classes_, always_, reporter_, {}};
  HandlePtr direct_;
};

TEST_F(AloneWriteTest, AFileThatGrowsIsAnsweredWhenTheMdsKnows) {
  const auto first = WriteAlone(0), second = WriteAlone(100), third = WriteAlone(200);
  ASSERT_EQ(osds_.flights.size(), 3u);
  osds_.Answer(0);
  EXPECT_EQ(reporter_.sizes, (std::vector<uint64_t>{100}));
  osds_.AnswerAll();
  EXPECT_FALSE(first->has_value());
  std::exchange(reporter_.held, nullptr)();
  EXPECT_EQ(*first, ErrorCode::kOk);
  EXPECT_FALSE(second->has_value());
  EXPECT_EQ(reporter_.sizes, (std::vector<uint64_t>{100, 300})) << "one for both";
  std::exchange(reporter_.held, nullptr)();
  EXPECT_EQ(*second, ErrorCode::kOk);
  EXPECT_EQ(*third, ErrorCode::kOk);
  const auto over = WriteAlone(50);
  osds_.AnswerAll();
  EXPECT_EQ(*over, ErrorCode::kOk) << "it does not grow";
  EXPECT_EQ(reporter_.sizes.size(), 2u);
}

TEST_F(SharedWriteTest, AttributesAreToldAfterSomeSeconds) {
  Lease();
  ASSERT_TRUE(SetMode(0600));
  clock_.Advance(std::chrono::seconds(3));
  files_.Tick();
  EXPECT_TRUE(reporter_.modes.empty());
  clock_.Advance(std::chrono::seconds(1));
  files_.Tick();
  EXPECT_EQ(reporter_.modes, std::vector<uint32_t>{0600});
  reporter_.held();
  EXPECT_FALSE(inode_->has_unreported());
}

TEST_F(SharedWriteTest, AttributesOfAnEvictedMountAreNotTold) {
  Lease();
  ASSERT_TRUE(SetMode(0600));
  classes_.Fence();
  files_.Evicted();
  EXPECT_EQ(Sync(), ErrorCode::kStale) << "told once";
  EXPECT_TRUE(reporter_.modes.empty());
  EXPECT_FALSE(inode_->holds_attributes());
}

}  // namespace
}  // namespace weir::client
