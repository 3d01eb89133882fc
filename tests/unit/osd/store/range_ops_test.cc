// Holes, extents and copies inside the store; the random test against the model is in
// extent_store_test.cc, power loss in tests/crash.
#include <gtest/gtest.h>

#include <future>

#include "common/disk/faulty_device.h"
#include "common/testing/seed.h"
#include "osd/format/superblock_format.h"
#include "osd/store/superblock.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;
using weir::testing::TestSeed;

constexpr uint64_t kMiB = 1 << 20;
const ObjectId kOne{InodeId(7), 0};
const ObjectId kTwo{InodeId(8), 3};

class RangeOpsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device_, {}).ok());
    Open();
  }
  void Open() {
    Result<std::unique_ptr<ObjectStore>> store = OpenStore(device_, options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = std::move(*store);
  }
  void Reopen() {
    EXPECT_TRUE(store_->Close().ok());
    store_.reset();
    Open();
  }
  Buffer Random(uint64_t size) { return RandomBytes(prng_, size); }
  uint64_t Used() {
    Reopen();  // all overlays are in their places then
    return store_->Stats().used_bytes;
  }

  uint64_t NextIndex(ObjectId id) {
    std::promise<uint64_t> next;
    store_->NextIndex(id, [&next](const Result<uint64_t>& found) { next.set_value(*found); });
    return next.get_future().get();
  }

  FaultyDevice device_{std::make_unique<MemDevice>(80 * kMiB)};
  StoreOptions options_{.memory_bytes = 1 << 20, .kv_write_buffer_bytes = 128 << 10};
  std::unique_ptr<ObjectStore> store_;
  Prng prng_{TestSeed()};
};

TEST_F(RangeOpsTest, PunchGivesWholeBlocksBackAndZeroesTheRest) {
  Buffer data = Random(64 * kBlockSize);
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, data).ok());
  const uint64_t before = Used();
  ASSERT_TRUE(PunchSync(*store_, kOne, 1000, 20 * kBlockSize).ok());
  EXPECT_EQ(Used(), before - 19 * kBlockSize);
  std::memset(data.data() + 1000, 0, 20 * kBlockSize);
  EXPECT_EQ(ReadAll(*store_, kOne)->view(), data.view());
  EXPECT_EQ(*ExtentsSync(*store_, kOne, 0, kMaxObjectSize),
            (std::vector<ByteRange>{{0, kBlockSize}, {20 * kBlockSize, 44 * kBlockSize}}));
}

TEST_F(RangeOpsTest, PunchToTheEndTakesARaggedLastBlockAlong) {
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, Random(10000)).ok());
  const Result<ObjectInfo> info = PunchSync(*store_, kOne, 0, 10000);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->size, 10000u);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(*ExtentsSync(*store_, kOne, 0, 10000), std::vector<ByteRange>{});
  EXPECT_EQ(ReadAll(*store_, kOne)->view(), std::string(10000, 0));
}

TEST_F(RangeOpsTest, PunchMakesNoObjectAndWorksOnAFullDevice) {
  ASSERT_TRUE(PunchSync(*store_, kTwo, 0, kMiB).ok());
  EXPECT_EQ(store_->Stats().objects, 0u);
  uint64_t index = 0;
  while (WriteSync(*store_, {InodeId(9), index}, 0, Random(4 * kMiB)).ok()) ++index;
  while (WriteSync(*store_, {InodeId(10), index}, 0, Random(64 * kBlockSize)).ok()) ++index;
  ASSERT_TRUE(PunchSync(*store_, {InodeId(9), 0}, 100, 3 * kMiB).ok());
  EXPECT_TRUE(WriteSync(*store_, kOne, 0, Random(2 * kMiB)).ok());
}

TEST_F(RangeOpsTest, ExtentsSeeOverlaysAndAreCutAtTheRange) {
  ASSERT_TRUE(WriteSync(*store_, kOne, 3 * kBlockSize, Buffer::CopyOf("small")).ok());
  EXPECT_EQ(*ExtentsSync(*store_, kOne, 0, kMaxObjectSize),
            (std::vector<ByteRange>{{3 * kBlockSize, 5}}));
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, Random(32 * kBlockSize)).ok());
  EXPECT_EQ(*ExtentsSync(*store_, kOne, 100, 50), (std::vector<ByteRange>{{100, 50}}));
  EXPECT_EQ(*ExtentsSync(*store_, kTwo, 0, 50), std::vector<ByteRange>{});
}

TEST_F(RangeOpsTest, CopiesShareTheirBlocksUntilOneIsChanged) {
  const Buffer data = Random(kMiB);
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, data).ok());
  const uint64_t before = Used();
  ASSERT_TRUE(CopySync(*store_, {kOne, 0}, kTwo, kMiB, kMiB).ok());
  EXPECT_EQ(Used(), before);
  EXPECT_EQ(store_->Stats().shared_bytes, kMiB);
  // Small writes go to RocksDB and must not be moved over the shared block.
  ASSERT_TRUE(WriteSync(*store_, kTwo, kMiB + 5000, Buffer::CopyOf("changed")).ok());
  EXPECT_EQ(Used(), before + kBlockSize);
  EXPECT_EQ(ReadAll(*store_, kOne)->view(), data.view());
  std::string copy(data.view());
  copy.replace(5000, 7, "changed");
  EXPECT_EQ(ReadRange(*store_, kTwo, kMiB, kMiB)->view(), copy);
  ASSERT_TRUE(DeleteSync(*store_, kOne).ok());
  EXPECT_EQ(Used(), before);
  EXPECT_EQ(ReadRange(*store_, kTwo, kMiB, kMiB)->view(), copy);
  ASSERT_TRUE(DeleteSync(*store_, kTwo).ok());
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(store_->Stats().shared_bytes, 0u);
}

TEST_F(RangeOpsTest, CopyTakesOverlaysAndRaggedEndsAlong) {
  Buffer data = Random(40 * kBlockSize);
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, data).ok());
  const Buffer small = Random(100);
  ASSERT_TRUE(WriteSync(*store_, kOne, 9 * kBlockSize + 50, small).ok());
  std::memcpy(data.data() + 9 * kBlockSize + 50, small.data(), 100);
  Buffer target = Random(60 * kBlockSize);
  ASSERT_TRUE(WriteSync(*store_, kTwo, 0, target).ok());
  const uint64_t from = 700, to = 3 * kBlockSize + 700, length = 21 * kBlockSize + 123;
  ASSERT_TRUE(CopySync(*store_, {kOne, from}, kTwo, to, length).ok());
  std::memcpy(target.data() + to, data.data() + from, length);
  EXPECT_EQ(ReadAll(*store_, kTwo)->view(), target.view());
  EXPECT_GE(store_->Stats().shared_bytes, 19 * kBlockSize);
  Reopen();
  EXPECT_EQ(ReadAll(*store_, kTwo)->view(), target.view());
  EXPECT_EQ(ReadAll(*store_, kOne)->view(), data.view());
}

TEST_F(RangeOpsTest, CopyBeyondTheSourceIsZerosAndOverItselfIsRefused) {
  ASSERT_TRUE(WriteSync(*store_, kTwo, 0, Random(10 * kBlockSize)).ok());
  ASSERT_TRUE(CopySync(*store_, {kOne, 5}, kTwo, 100, 2 * kBlockSize).ok());
  EXPECT_EQ(ReadRange(*store_, kTwo, 100, 2 * kBlockSize)->view(), std::string(2 * kBlockSize, 0));
  EXPECT_EQ(CopySync(*store_, {kTwo, 0}, kTwo, 100, 101).code(), ErrorCode::kInvalid);
  EXPECT_TRUE(CopySync(*store_, {kTwo, 0}, kTwo, 4 * kBlockSize, 4 * kBlockSize).ok());
}

// Goal: two objects that got one block by mistake are noticed, copies are not. Method: the same
// content written twice is no copy: forge nothing, only see that sharing survives many reopens.
TEST_F(RangeOpsTest, SharingSurvivesReopens) {
  const Buffer data = Random(256 * kBlockSize);
  ASSERT_TRUE(WriteSync(*store_, kOne, 0, data).ok());
  for (uint64_t i = 0; i < 5; ++i) {
    const ObjectId copy{InodeId(20 + i), 0};
    ASSERT_TRUE(CopySync(*store_, {kOne, 0}, copy, 0, data.size()).ok());
    Reopen();
    EXPECT_EQ(store_->Stats().shared_bytes, (i + 1) * data.size());
    EXPECT_EQ(ReadAll(*store_, copy)->view(), data.view());
  }
}

TEST_F(RangeOpsTest, ADiskOfTheFirstFormatIsTakenOver) {
  store_.reset();
  Result<Superblock> super = LoadSuperblock(device_);
  ASSERT_TRUE(super.ok());
  super->version = 1;
  ++super->generation;
  ASSERT_TRUE(StoreSuperblock(device_, *super).ok());
  Open();
  EXPECT_EQ(LoadSuperblock(device_)->version, kFormatVersion);
}

TEST_F(RangeOpsTest, NextIndexFindsTheNextObjectOfTheInode) {
  for (const uint64_t index : {0, 5, 9}) {
    ASSERT_TRUE(WriteSync(*store_, {InodeId(30), index}, 0, Buffer::CopyOf("x")).ok());
  }
  Reopen();
  EXPECT_EQ(NextIndex({InodeId(30), 0}), 5u);
  EXPECT_EQ(NextIndex({InodeId(30), 5}), 9u);
  EXPECT_EQ(NextIndex({InodeId(30), 9}), UINT64_MAX);
  EXPECT_EQ(NextIndex({InodeId(29), 0}), UINT64_MAX);
}

}  // namespace
}  // namespace weir::osd
