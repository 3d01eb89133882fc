// Large operations of the store in pieces: what is acknowledged when, and what an error leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/crash/store_harness.h"
#include "tests/unit/osd/store/held_device.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Request = HeldDevice::Request;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kPiece = 256 << 10;
const ObjectId kObject{InodeId(7), 0};

class StorePiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device_, {}).ok());
    Result<std::unique_ptr<ObjectStore>> store =
        OpenStore(device_, {.kv_write_buffer_bytes = 4 * kMiB});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = std::move(*store);
    ASSERT_TRUE(WriteSync(*store_, kObject, 0, old_).ok());
    used_ = store_->Stats().used_bytes;
    store_->SetPieceBytes(kPiece);
    device_.HoldFrom(kPiece);
  }
  void TearDown() override { device_.HoldFrom(UINT64_MAX); }
  // The one request that is on the device.
  Request OnDevice() {
    const std::vector<Request> held = device_.held();
    EXPECT_EQ(held.size(), 1u);
    return held.empty() ? Request{} : held[0];
  }
  // Lets `count` pieces through, each of which must lie behind the one before.
  void Pass(int count) {
    for (int i = 0; i < count; ++i) {
      const Request piece = OnDevice();
      EXPECT_EQ(piece.bytes, kPiece);
      if (i > 0) {
        EXPECT_EQ(piece.offset, last_ + kPiece);
      }
      last_ = piece.offset;
      device_.Release();
    }
  }
  template <typename T>
  static bool IsDone(const Waiter<T>& waiter) {
    return waiter.future.wait_for(0s) == std::future_status::ready;
  }

  Prng prng_{11};
  HeldDevice device_{80 * kMiB};
  const Buffer old_ = RandomBytes(prng_, kMiB), new_ = RandomBytes(prng_, kMiB);
  std::unique_ptr<ObjectStore> store_;
  uint64_t used_ = 0, last_ = 0;
};

TEST_F(StorePiecesTest, AWriteIsAcknowledgedAfterItsLastPieceAndIsOldUntilThen) {
  Waiter<Result<ObjectInfo>> waiter;
  store_->Write(kObject, 0, new_, {}, waiter.Callback());
  Pass(3);
  EXPECT_FALSE(IsDone(waiter));
  // A small read gets in between, and sees the old bytes.
  EXPECT_EQ(ReadRange(*store_, kObject, 8192, 4096)->view(), old_.Slice(8192, 4096).view());
  Pass(1);
  EXPECT_TRUE(waiter.future.get().ok());
  EXPECT_THAT(device_.held(), IsEmpty());
  device_.HoldFrom(UINT64_MAX);
  EXPECT_EQ(ReadAll(*store_, kObject)->view(), new_.view());
}

TEST_F(StorePiecesTest, AWriteTellsThatItsDataLandedBeforeItIsAcknowledged) {
  Waiter<Result<ObjectInfo>> waiter;
  int landed = 0;
  bool done_before = false;
  WriteHints hints;
  hints.landed = [&] {
    ++landed;
    done_before = IsDone(waiter);
    return Duration(0);
  };
  hints.patience = std::chrono::hours(1);  // which what it returns then cuts short
  store_->Write(kObject, 0, new_, hints, waiter.Callback());
  Pass(3);
  EXPECT_EQ(landed, 0);
  Pass(1);
  EXPECT_EQ(landed, 1);
  EXPECT_FALSE(done_before);
  EXPECT_TRUE(waiter.future.get().ok());
  hints.patience = Duration(0);
  // Neither for one that fails nor for one that goes with its commit.
  Waiter<Result<ObjectInfo>> failed, small;
  store_->Write(kObject, 0, new_, hints, failed.Callback());
  device_.Release(0, {ErrorCode::kIo, "mem: planted"});
  EXPECT_FALSE(failed.future.get().ok());
  store_->Write(kObject, 0, Buffer::AlignedZeros(4096), hints, small.Callback());
  EXPECT_TRUE(small.future.get().ok());
  EXPECT_EQ(landed, 1);
}

TEST_F(StorePiecesTest, AFailedPieceFailsTheWriteAndLeavesTheOldObjectAndNoSpaceLost) {
  Waiter<Result<ObjectInfo>> waiter;
  store_->Write(kObject, 0, new_, {}, waiter.Callback());
  Pass(1);
  device_.Release(0, {ErrorCode::kIo, "mem: planted"});
  EXPECT_THAT(device_.held(), IsEmpty());  // two pieces are never tried
  EXPECT_EQ(waiter.future.get().code(), ErrorCode::kIo);
  EXPECT_EQ(store_->Stats().used_bytes, used_);
  device_.HoldFrom(UINT64_MAX);
  EXPECT_EQ(ReadAll(*store_, kObject)->view(), old_.view());
  EXPECT_TRUE(WriteSync(*store_, kObject, 0, new_).ok());  // the store goes on
  EXPECT_EQ(ReadAll(*store_, kObject)->view(), new_.view());
}

TEST_F(StorePiecesTest, OperationsBehindAWriteInPiecesTakeEffectAfterIt) {
  Waiter<Result<ObjectInfo>> first, cut;
  store_->Write(kObject, 0, new_, {}, first.Callback());
  store_->Truncate(kObject, kMiB / 2, cut.Callback());
  EXPECT_FALSE(IsDone(cut));
  Pass(4);
  EXPECT_TRUE(first.future.get().ok());
  EXPECT_TRUE(cut.future.get().ok());
  device_.HoldFrom(UINT64_MAX);
  EXPECT_EQ(ReadAll(*store_, kObject)->view(), new_.Slice(0, kMiB / 2).view());
}

TEST_F(StorePiecesTest, AReadComesInPieces) {
  Waiter<Result<ObjectData>> waiter;
  store_->Read(kObject, 0, kMiB, waiter.Callback());
  Pass(4);
  EXPECT_EQ(waiter.future.get()->bytes.view(), old_.view());

  Waiter<Result<ObjectData>> failing;
  store_->Read(kObject, 0, kMiB, failing.Callback());
  Pass(1);
  device_.Release(0, {ErrorCode::kIo, "mem: planted"});
  EXPECT_THAT(device_.held(), IsEmpty());
  EXPECT_EQ(failing.future.get().code(), ErrorCode::kIo);
}

// Goal: moving small writes to their places does not flood the device either.
// Method: 64 blocks side by side as overlays; closing the store moves them, in pieces of 16.
TEST_F(StorePiecesTest, OverlaysMoveInPieces) {
  Waiter<Result<ObjectData>> look;  // where the object lies
  store_->Read(kObject, 0, kMiB, look.Callback());
  const uint64_t place = OnDevice().offset;
  Pass(4);
  ASSERT_TRUE(look.future.get().ok());
  for (uint64_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(WriteSync(*store_, kObject, i * 4096, new_.Slice(i * 4096, 4096)).ok());
  }
  store_->SetPieceBytes(16 * 4096);
  device_.HoldWithin(place, kMiB);
  device_.HoldFrom(0);
  std::thread closer([this] { EXPECT_TRUE(store_->Close().ok()); });
  for (uint64_t piece = 0; piece < 4 && device_.WaitHeld(); ++piece) {
    EXPECT_EQ(OnDevice(), (Request{place + piece * 16 * 4096, 16 * 4096}));
    device_.Release();
  }
  closer.join();
}

TEST_F(StorePiecesTest, WithNobodyInAHurryAWriteIsOneRequest) {
  store_->SetPieceBytes(UINT64_MAX);
  Waiter<Result<ObjectInfo>> waiter;
  store_->Write(kObject, 0, new_, {}, waiter.Callback());
  EXPECT_EQ(OnDevice().bytes, kMiB);
  device_.Release();
  EXPECT_TRUE(waiter.future.get().ok());
}

}  // namespace
}  // namespace weir::osd
