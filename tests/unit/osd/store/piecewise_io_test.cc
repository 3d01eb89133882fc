// Which requests the device sees of one operation, and when.
#include "osd/store/piecewise_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "common/base/prng.h"
#include "tests/crash/store_harness.h"
#include "tests/unit/osd/store/held_device.h"

namespace weir::osd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Request = testing::HeldDevice::Request;

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

class PiecewiseIoTest : public ::testing::Test {
 protected:
  using Kind = PiecewiseIo::Kind;

  void Run(const std::vector<Request>& places, Kind kind = Kind::kWrite) {
    std::vector<PiecewiseIo::Range> ranges;
    for (const Request& place : places) {
      ranges.push_back({place.offset, Buffer::AlignedZeros(place.bytes)});
    }
    PiecewiseIo::Run(device_, kind, std::move(ranges), piece_bytes_, [this](Status status) {
      EXPECT_FALSE(done_.has_value()) << "called twice";
      done_ = std::move(status);
    });
  }
  void HoldAll() { device_.HoldFrom(0); }

  testing::HeldDevice device_{8 * kMiB};
  std::atomic<uint64_t> piece_bytes_{UINT64_MAX};
  std::optional<Status> done_;
};

TEST_F(PiecewiseIoTest, WholeGoesAtOnceAndIsDoneWithTheLast) {
  HoldAll();
  Run({{0, kMiB}, {2 * kMiB, kMiB}, {4 * kMiB, 4096}});
  EXPECT_THAT(device_.held(),
              ElementsAre(Request{0, kMiB}, Request{2 * kMiB, kMiB}, Request{4 * kMiB, 4096}));
  device_.Release(1);
  device_.Release(1);
  EXPECT_FALSE(done_.has_value());
  device_.Release();
  ASSERT_TRUE(done_.has_value());
  EXPECT_TRUE(done_->ok());
}

TEST_F(PiecewiseIoTest, APieceGoesOnlyWhenTheLastOneIsDone) {
  HoldAll();
  piece_bytes_ = 256 * kKiB;
  for (const Kind kind : {Kind::kWrite, Kind::kRead}) {
    done_.reset();
    Run({{kMiB, 640 * kKiB}}, kind);
    EXPECT_THAT(device_.held(), ElementsAre(Request{kMiB, 256 * kKiB}));
    device_.Release();
    EXPECT_THAT(device_.held(), ElementsAre(Request{kMiB + 256 * kKiB, 256 * kKiB}));
    device_.Release();
    EXPECT_THAT(device_.held(), ElementsAre(Request{kMiB + 512 * kKiB, 128 * kKiB}));
    EXPECT_FALSE(done_.has_value());
    device_.Release();
    EXPECT_THAT(device_.held(), IsEmpty());
    ASSERT_TRUE(done_.has_value());
    EXPECT_TRUE(done_->ok());
  }
  EXPECT_EQ(device_.counters().writes, 3u);
  EXPECT_EQ(device_.counters().reads, 3u);
}

TEST_F(PiecewiseIoTest, APieceOfAScatteredOperationIsSeveralRequests) {
  HoldAll();
  piece_bytes_ = 64 * kKiB;
  Run({{0, 4096}, {kMiB, 40 * kKiB}, {2 * kMiB, 40 * kKiB}});
  EXPECT_THAT(device_.held(), ElementsAre(Request{0, 4096}, Request{kMiB, 40 * kKiB},
                                          Request{2 * kMiB, 20 * kKiB}));
  device_.Release(2);
  device_.Release(0);
  EXPECT_THAT(device_.held(), ElementsAre(Request{kMiB, 40 * kKiB}));
  device_.Release();
  EXPECT_THAT(device_.held(), ElementsAre(Request{2 * kMiB + 20 * kKiB, 20 * kKiB}));
  device_.Release();
  EXPECT_TRUE(done_.has_value());
}

TEST_F(PiecewiseIoTest, TheSizeIsLookedUpBeforeEachPiece) {
  HoldAll();
  piece_bytes_ = 64 * kKiB;
  Run({{0, kMiB}});
  device_.Release();
  piece_bytes_ = 128 * kKiB;
  device_.Release();
  EXPECT_THAT(device_.held(), ElementsAre(Request{128 * kKiB, 128 * kKiB}));
  piece_bytes_ = UINT64_MAX;  // the hurry is over
  device_.Release();
  EXPECT_THAT(device_.held(), ElementsAre(Request{256 * kKiB, 768 * kKiB}));
  device_.Release();
  EXPECT_TRUE(done_.has_value());
}

TEST_F(PiecewiseIoTest, PiecesAreWholeBlocksAndNeverNone) {
  HoldAll();
  for (const auto& [wanted, bytes] : {std::pair{0ul, 4096ul}, {1ul, 4096ul}, {12000ul, 8192ul}}) {
    done_.reset();
    piece_bytes_ = wanted;
    Run({{0, 64 * kKiB}});
    EXPECT_THAT(device_.held(), ElementsAre(Request{0, bytes})) << wanted;
    piece_bytes_ = UINT64_MAX;
    device_.Release();
    device_.Release();
    EXPECT_TRUE(done_.has_value());
  }
}

TEST_F(PiecewiseIoTest, AfterAnErrorNothingMoreIsIssuedAndTheRestIsWaitedFor) {
  HoldAll();
  piece_bytes_ = 64 * kKiB;
  Run({{0, 32 * kKiB}, {kMiB, kMiB}});
  device_.Release(0, {ErrorCode::kIo, "first"});
  EXPECT_FALSE(done_.has_value());  // the other request of this piece is on the device
  device_.Release(0, {ErrorCode::kIo, "second"});
  EXPECT_THAT(device_.held(), IsEmpty());
  ASSERT_TRUE(done_.has_value());
  EXPECT_EQ(done_->code(), ErrorCode::kIo);
  EXPECT_EQ(done_->message(), "first");
}

TEST_F(PiecewiseIoTest, NothingToDoIsDone) {
  Run({});
  ASSERT_TRUE(done_.has_value());
  EXPECT_TRUE(done_->ok());
}

// Goal: a device that completes inside the call neither nests nor loses bytes.
// Method: 4 MiB in 1,024 pieces there and back.
TEST_F(PiecewiseIoTest, ManyPiecesOnAnImmediateDeviceKeepTheBytes) {
  Prng prng(7);
  const Buffer out = testing::RandomBytes(prng, 4 * kMiB);
  const Buffer in = Buffer::AlignedZeros(4 * kMiB);
  piece_bytes_ = kBlockSize;
  int done = 0;
  const auto count = [&](const Status& status) { done += status.ok() ? 1 : 0; };
  PiecewiseIo::Run(device_, Kind::kWrite, {{kMiB, out}}, piece_bytes_, count);
  PiecewiseIo::Run(device_, Kind::kRead, {{kMiB, in}}, piece_bytes_, count);
  EXPECT_EQ(done, 2);
  EXPECT_EQ(device_.counters().writes, 1024u);
  EXPECT_EQ(device_.counters().reads, 1024u);
  EXPECT_EQ(in.view(), out.view());
}

}  // namespace
}  // namespace weir::osd
