// Closes of files that were written: which end at once, what becomes of the data then, and who
// hears of it when it was lost.
#include "tests/unit/client/data/shared_file_fixture.h"

namespace weir::client {
namespace {

class FileCloseTest : public SharedFileFixture {
 protected:
  Ended Close() {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    files_.Close(handle_, [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }
};

TEST_F(FileCloseTest, StoresWithAgeAndIsReleasedThen) {
  Lease();
  Write(handle_, 0);
  EXPECT_EQ(*Close(), ErrorCode::kOk);
  bool stored = false;
  files_.WhenStored(kSharedFile, [&] { stored = true; });
  EXPECT_EQ(osds_.sent, 0u);
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  ASSERT_NE(reporter_.held, nullptr);
  EXPECT_FALSE(stored) << "the MDS does not know how long it is";
  reporter_.Answer();
  EXPECT_TRUE(stored);
  stored = false;
  files_.WhenStored(kSharedFile, [&] { stored = true; });
  EXPECT_TRUE(stored) << "nothing is left";
}

TEST_F(FileCloseTest, ARenameWaitsForWhatItMoves) {
  const MadeName made{InodeId(1), "made"}, moved{InodeId(1), "moved"};
  Lease();
  inode_->Made(made);
  Write(handle_, 0);
  Close();
  EXPECT_TRUE(files_.HasClosed(made));
  EXPECT_FALSE(files_.HasClosed(moved));
  files_.Renamed(kSharedFile, made, moved);
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
  reporter_.Answer();
  EXPECT_TRUE(same);
  EXPECT_FALSE(files_.HasClosed(moved));
}

TEST_F(FileCloseTest, ARenameWaitsForWhatMayHaveThatName) {
  Lease();
  Write(handle_, 0);
  Close();
  bool stored = false;
  files_.StoreClosed(MadeName{InodeId(1), "any"}, [&] { stored = true; });
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  reporter_.Answer();
  EXPECT_TRUE(stored);
}

TEST_F(FileCloseTest, WhatWasCutToNothingIsStoredFromTheCloseOn) {
  Lease();
  FileAttr cut = inode_->attr();
  cut.size = 0;
  FileAttr full = cut;
  full.size = 10;
  inode_->Update(full);
  inode_->Resized(cut);
  Write(handle_, 0);
  EXPECT_EQ(*Close(), ErrorCode::kOk) << "nobody waits for it";
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  reporter_.Answer();
  EXPECT_FALSE(inode_->is_emptied());
}

TEST_F(FileCloseTest, OfWhatLostItsLastNameNothingIsStored) {
  Lease(true);
  Write(handle_, 0);
  Close();
  bool released = false;
  files_.WhenStored(kSharedFile, [&] { released = true; });
  files_.Forgotten(kSharedFile);
  EXPECT_TRUE(released);
  EXPECT_FALSE(inode_->has_unreported());
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  EXPECT_EQ(osds_.sent, 0u);
  EXPECT_EQ(reporter_.held, nullptr);
}

TEST_F(FileCloseTest, WhatIsOnItsWayArrivesBeforeTheFileIsReleased) {
  Lease(true);
  Write(handle_, 0);
  Close();
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  ASSERT_EQ(osds_.flights.size(), 1u);
  bool released = false;
  files_.WhenStored(kSharedFile, [&] { released = true; });
  files_.Forgotten(kSharedFile);
  EXPECT_FALSE(released);
  osds_.Answer(0);
  if (reporter_.held != nullptr) reporter_.Answer();
  EXPECT_TRUE(released);
}

TEST_F(FileCloseTest, WhatOthersHaveSeenIsStoredEvenWithoutAName) {
  Lease(false);
  Write(handle_, 0);
  Close();
  files_.Forgotten(kSharedFile);
  clock_.Advance(std::chrono::seconds(5));
  files_.Tick();
  EXPECT_EQ(osds_.flights.size(), 1u) << "somebody may be about to open it";
}

TEST_F(FileCloseTest, WaitsAndBuffersNothingWhileAnOsdIsNearlyFull) {
  Lease();
  ClusterMap map;
  map.near_full = true;
  files_.SetMap(map);
  const auto written = Write(handle_, 0);
  ASSERT_EQ(osds_.flights.size(), 1u);
  EXPECT_FALSE(written->has_value());
  osds_.Answer(0);
  EXPECT_EQ(*written, ErrorCode::kOk);
  const auto ended = Close();
  EXPECT_FALSE(ended->has_value());
  reporter_.Answer();
  EXPECT_EQ(*ended, ErrorCode::kOk);
}

TEST_F(FileCloseTest, WhatIsClosedIsStoredWhenAnOsdSaysThatItIsNearlyFull) {
  Lease();
  Write(handle_, 0);
  EXPECT_EQ(*Close(), ErrorCode::kOk);
  EXPECT_TRUE(osds_.flights.empty());
  ClusterMap map;
  map.near_full = true;
  files_.SetMap(map);
  files_.Tick();
  EXPECT_EQ(osds_.flights.size(), 1u) << "others may fill it";
}

TEST_F(FileCloseTest, WaitsWithoutNewsOfTheMds) {
  Lease();
  Write(handle_, 0);
  clock_.Advance(std::chrono::seconds(3));
  const auto ended = Close();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(ended->has_value()) << "this mount may be cut off";
  reporter_.Answer();
  EXPECT_EQ(*ended, ErrorCode::kOk);
}

TEST_F(FileCloseTest, WaitsWithoutALease) {
  Lease();
  Write(handle_, 0);
  leases_.Revoke(inode_);
  const auto ended = Close();
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(ended->has_value());
  reporter_.Answer();
  EXPECT_EQ(*ended, ErrorCode::kOk);
}

TEST_F(FileCloseTest, OfAnEvictedMountItIsReleasedAndTheNextCloseTells) {
  Lease();
  Write(handle_, 0);
  Close();
  bool released = false;
  files_.WhenStored(kSharedFile, [&] { released = true; });
  classes_.Fence();
  objects_.DropFenced();
  files_.Evicted();
  EXPECT_TRUE(released);
  EXPECT_EQ(*Close(), ErrorCode::kStale);
  EXPECT_EQ(osds_.sent, 0u);
}

TEST_F(FileCloseTest, WaitsWhereAsked) {
  FileIo::Options options;
  options.sync_close = true;
  FileIo files{clock_, objects_, inodes_, classes_, leases_, reporter_, options};
  Lease();
  WriteBy(files, handle_, 0);
  std::optional<ErrorCode> ended;
  files.Close(handle_, [&](const Status& status) { ended = status.code(); });
  ASSERT_EQ(osds_.flights.size(), 1u);
  osds_.Answer(0);
  EXPECT_FALSE(ended.has_value());
  reporter_.Answer();
  EXPECT_EQ(ended, ErrorCode::kOk);
}

TEST_F(FileCloseTest, AFailureIsToldAtCloseToThoseWhoWroteAndAtFsyncToAll) {
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
  reporter_.Answer();
  EXPECT_EQ(synced, ErrorCode::kIo);
  EXPECT_EQ(told(reader, fsync), ErrorCode::kOk);
  EXPECT_EQ(told(Open(), close), ErrorCode::kOk);
}

}  // namespace
}  // namespace weir::client
