// Space that is kept for blocks before they are written: what it is counted as, that no write of it
// fails on a full device, and that nothing of it gets lost or leaks. Power loss: tests/crash.
#include <gtest/gtest.h>

#include "common/disk/faulty_device.h"
#include "common/testing/seed.h"
#include "osd/store/store_check.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;
using weir::testing::TestSeed;

constexpr uint64_t kMiB = 1 << 20;
const ObjectId kOne{InodeId(7), 0};
const ObjectId kTwo{InodeId(8), 3};

class AllocatedTest : public ::testing::Test {
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
  // The checker agrees with the store to the block.
  void Reopen() {
    EXPECT_TRUE(store_->Close().ok());
    const uint64_t used = store_->Stats().used_bytes;
    store_.reset();
    const Result<CheckReport> report = CheckStore(device_, {.deep = true});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->findings.clean()) << ToText(*report);
    EXPECT_EQ(report->Fact("used_bytes"), used);
    Open();
    EXPECT_EQ(store_->Stats().used_bytes, used);
  }
  uint64_t Used() const { return store_->Stats().used_bytes; }
  Buffer Random(uint64_t size) { return RandomBytes(prng_, size); }
  // Until there is no room for a single block.
  void FillUp() {
    uint64_t index = 0;
    for (const uint64_t size : {4 * kMiB, 64 * kBlockSize, uint64_t{kBlockSize}}) {
      while (WriteSync(*store_, {InodeId(99), index}, 0, Random(size)).ok()) ++index;
    }
    EXPECT_EQ(WriteSync(*store_, {InodeId(99), index}, 0, Random(1)).code(), ErrorCode::kNoSpace);
  }
  Status Write(ObjectId id, uint64_t offset, const Buffer& data) {
    return WriteSync(*store_, id, offset, data).status();
  }

  FaultyDevice device_{std::make_unique<MemDevice>(160 * kMiB)};
  StoreOptions options_{.memory_bytes = 1 << 20,
                        .deferred_apply_bytes = 64 << 10,
                        .kv_write_buffer_bytes = 256 << 10};
  std::unique_ptr<ObjectStore> store_;
  Prng prng_{TestSeed()};
};

TEST_F(AllocatedTest, CountsAsUsedAndReadsAsAHole) {
  const Result<ObjectInfo> info = AllocateSync(*store_, kOne, 100, kMiB);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->size, 0u);
  EXPECT_EQ(info->grown_bytes, kMiB + kBlockSize);
  EXPECT_EQ(info->kept, (std::vector<ByteRange>{{0, kMiB + kBlockSize}}));
  EXPECT_EQ(Used(), kMiB + kBlockSize);
  Reopen();
  EXPECT_EQ(Used(), kMiB + kBlockSize);
  EXPECT_EQ(AllocateSync(*store_, kOne, 0, kMiB)->grown_bytes, 0u);
  // Behind its size there is nothing, before it zeros; no device is asked.
  ASSERT_TRUE(Write(kOne, kMiB, Random(10)).ok());
  Reopen();
  const uint64_t reads = device_.counters().reads.load();
  EXPECT_EQ(ReadRange(*store_, kOne, 0, kMiB)->view(), std::string(kMiB, 0));
  EXPECT_EQ(device_.counters().reads.load(), reads);
  EXPECT_EQ(*ExtentsSync(*store_, kOne, 0, kMaxObjectSize), (std::vector<ByteRange>{{kMiB, 10}}));
  EXPECT_EQ(Used(), kMiB + kBlockSize);
}

TEST_F(AllocatedTest, WritesUseItUpBlockByBlock) {
  ASSERT_TRUE(AllocateSync(*store_, kOne, 0, 100 * kBlockSize).ok());
  const uint64_t used = Used();
  EXPECT_EQ(WriteSync(*store_, kOne, 10 * kBlockSize, Random(20 * kBlockSize))->grown_bytes, 0u);
  EXPECT_EQ(WriteSync(*store_, kOne, 50 * kBlockSize + 7, Random(100))->grown_bytes, 0u);
  EXPECT_EQ(WriteSync(*store_, kOne, 99 * kBlockSize, Random(2 * kBlockSize))->grown_bytes,
            kBlockSize);
  Reopen();
  EXPECT_EQ(Used(), used + kBlockSize);
  EXPECT_EQ(PunchSync(*store_, kOne, 0, 60 * kBlockSize)->freed_bytes, 60 * kBlockSize);
  EXPECT_EQ(Used(), 41 * kBlockSize);
  // Of its 41 blocks 9 were small writes that may not have been moved to their places yet.
  EXPECT_EQ(TruncateSync(*store_, kOne, 70 * kBlockSize)->freed_bytes, 31 * kBlockSize);
  EXPECT_EQ(Used(), 10 * kBlockSize);
  Reopen();
  ASSERT_TRUE(DeleteSync(*store_, kOne).ok());
  EXPECT_EQ(Used(), 0u);
  Reopen();
}

TEST_F(AllocatedTest, GivesBackWhatWasNotWritten) {
  ASSERT_TRUE(AllocateSync(*store_, kOne, 0, 8 * kBlockSize).ok());
  ASSERT_TRUE(Write(kOne, 0, Random(2 * kBlockSize)).ok());
  EXPECT_EQ(GiveBackSync(*store_, kOne, 0, 6 * kBlockSize)->freed_bytes, 4 * kBlockSize);
  Reopen();
  EXPECT_EQ(Used(), 4 * kBlockSize);
  EXPECT_EQ(StatSync(*store_, kOne)->size, 2 * kBlockSize);
  ASSERT_TRUE(GiveBackSync(*store_, kTwo, 0, kMiB).ok());
  EXPECT_EQ(StatSync(*store_, kTwo)->version, replication::Version());
}

TEST_F(AllocatedTest, ZerosStayAllocated) {
  Buffer data = Random(20 * kBlockSize);
  ASSERT_TRUE(Write(kOne, 0, data).ok());
  ASSERT_TRUE(AllocateSync(*store_, kOne, 30 * kBlockSize, kBlockSize).ok());
  const Result<ObjectInfo> info = AllocateSync(*store_, kOne, 1000, 39 * kBlockSize, true);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->grown_bytes, 19 * kBlockSize);
  std::memset(data.data() + 1000, 0, data.size() - 1000);
  EXPECT_EQ(ReadAll(*store_, kOne)->view(), data.view());
  Reopen();
  EXPECT_EQ(Used(), 40 * kBlockSize);
  EXPECT_EQ(*ExtentsSync(*store_, kOne, 0, kMiB), (std::vector<ByteRange>{{0, kBlockSize}}));
}

TEST_F(AllocatedTest, AllOrNothing) {
  FillUp();
  ASSERT_TRUE(DeleteSync(*store_, {InodeId(99), 0}).ok());
  ASSERT_TRUE(AllocateSync(*store_, kOne, 0, 2 * kMiB).ok());
  const uint64_t used = Used();
  EXPECT_EQ(AllocateSync(*store_, kTwo, 0, 3 * kMiB).code(), ErrorCode::kNoSpace);
  EXPECT_EQ(AllocateSync(*store_, kTwo, 0, 3 * kMiB, true).code(), ErrorCode::kNoSpace);
  EXPECT_EQ(Used(), used);
  EXPECT_EQ(StatSync(*store_, kTwo)->version, replication::Version());
  EXPECT_TRUE(AllocateSync(*store_, kOne, 0, 2 * kMiB).ok()) << "it is there already";
  Reopen();
}

// Goal: what was allocated can be written, and written anew, in any pieces and any number at a
// time, on a device with no room at all; and made zeros of.
TEST_F(AllocatedTest, NoWriteOfItFailsOnAFullDevice) {
  constexpr size_t kObjects = 4;
  std::vector<std::string> model(kObjects, std::string(kMaxObjectSize, 0));
  for (size_t i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(AllocateSync(*store_, {InodeId(1), i}, 0, kMaxObjectSize).ok());
    ASSERT_TRUE(
        Write({InodeId(1), i}, kMaxObjectSize - 1, Buffer::CopyOf(std::string_view("\0", 1))).ok());
  }
  FillUp();
  for (int round = 0; round < 60; ++round) {
    std::vector<Waiter<Result<ObjectInfo>>> waiters;
    const bool large = prng_.Chance(0.2);
    for (int i = 0; i < (large ? 3 : 24); ++i) {
      const size_t object = prng_.Uniform(0, kObjects - 1);
      uint64_t size = large ? prng_.Uniform(1, 1024) * kBlockSize : RandomSize(prng_);
      uint64_t offset = prng_.Uniform(0, kMaxObjectSize - size);
      if (prng_.Chance(0.6)) offset = offset / kBlockSize * kBlockSize;
      waiters.emplace_back();
      if (prng_.Chance(0.1)) {
        model[object].replace(offset, size, std::string(size, 0));
        store_->Allocate({InodeId(1), object}, offset, size, true, waiters.back().Callback());
        continue;
      }
      const Buffer data = Random(size);
      model[object].replace(offset, size, data.view());
      store_->Write({InodeId(1), object}, offset, data, {}, waiters.back().Callback());
    }
    for (auto& waiter : waiters) {
      const Status status = waiter.future.get().status();
      ASSERT_TRUE(status.ok()) << "round " << round << ": " << status;
    }
    if (round % 20 == 19) Reopen();
  }
  for (size_t i = 0; i < kObjects; ++i) {
    EXPECT_TRUE(ReadAll(*store_, {InodeId(1), i})->view() == model[i]) << i;
  }
}

TEST_F(AllocatedTest, WhatCopiesShareGetsSpaceOfItsOwn) {
  ASSERT_TRUE(Write(kOne, 0, Random(64 * kBlockSize)).ok());
  Reopen();
  ASSERT_TRUE(CopySync(*store_, {kOne, 0}, kTwo, 0, 64 * kBlockSize).ok());
  EXPECT_EQ(Used(), 64 * kBlockSize);
  EXPECT_EQ(AllocateSync(*store_, kOne, 0, 64 * kBlockSize)->grown_bytes, 0u);
  EXPECT_EQ(Used(), 128 * kBlockSize);
  Reopen();
  FillUp();
  EXPECT_TRUE(Write(kOne, 0, Random(64 * kBlockSize)).ok());
  EXPECT_EQ(Write(kTwo, 4 * kMiB - kBlockSize, Random(64)).code(), ErrorCode::kNoSpace);
  Reopen();
}

TEST_F(AllocatedTest, CopiesOfItAreHoles) {
  ASSERT_TRUE(AllocateSync(*store_, kOne, 0, 64 * kBlockSize).ok());
  ASSERT_TRUE(Write(kOne, 63 * kBlockSize, Random(kBlockSize)).ok());
  ASSERT_TRUE(Write(kTwo, 0, Random(64 * kBlockSize)).ok());
  EXPECT_EQ(CopySync(*store_, {kOne, 0}, kTwo, 0, 64 * kBlockSize)->freed_bytes, 63 * kBlockSize);
  EXPECT_EQ(ReadRange(*store_, kTwo, 0, 63 * kBlockSize)->view(), std::string(63 * kBlockSize, 0));
  Reopen();
}

}  // namespace
}  // namespace weir::osd
