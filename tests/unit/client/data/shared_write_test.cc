// Writes of a mount that others share: with a lease they are buffered, without one they are stored
// and reported before they are answered; and what becomes of them when the mount is evicted.
#include "tests/unit/client/data/shared_file_fixture.h"

namespace weir::client {
namespace {

class SharedWriteTest : public SharedFileFixture {};

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
  reporter_.Answer();
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
  reporter_.Answer();
  EXPECT_EQ(*again, ErrorCode::kOk);
}

// The MDS knows of the eviction before the mount does.
TEST_F(SharedWriteTest, IsNotToldToBeSafeWhenTheReportComesAfterTheEviction) {
  reporter_.refusal = ErrorCode::kStaleEpoch;
  const auto ended = Write(handle_, 0);
  osds_.Answer(0);
  reporter_.Answer();
  EXPECT_EQ(*ended, ErrorCode::kStale);
  const auto synced = Fsync(handle_);
  ASSERT_EQ(reporter_.sizes.size(), 2u) << "nothing of it is known to the MDS";
  reporter_.Answer();
  EXPECT_EQ(*synced, ErrorCode::kStale);
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
  reporter_.Answer();
  EXPECT_EQ(*again, ErrorCode::kOk);
}

TEST_F(SharedWriteTest, OfAFileThatIsGoneIsMissedByNobody) {
  reporter_.refusal = ErrorCode::kStale;
  const auto ended = Write(handle_, 0);
  osds_.Answer(0);
  reporter_.Answer();
  EXPECT_EQ(*ended, ErrorCode::kOk);
  EXPECT_FALSE(inode_->has_unreported());
}

TEST_F(SharedWriteTest, AReportThatWasWaitingWhenTheMountWasEvictedIsNotSent) {
  Lease();
  Write(handle_, 0);
  const auto synced = Fsync(handle_);
  ASSERT_EQ(osds_.flights.size(), 1u);
  classes_.Fence();
  files_.Evicted();
  osds_.Answer(0);
  EXPECT_EQ(*synced, ErrorCode::kStale);
  EXPECT_TRUE(reporter_.sizes.empty());
}

}  // namespace
}  // namespace weir::client
