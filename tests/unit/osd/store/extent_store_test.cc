#include "osd/store/extent_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common/base/crc32c.h"
#include "common/disk/faulty_device.h"
#include "common/testing/seed.h"
#include "osd/store/mem_object_store.h"
#include "osd/store/superblock.h"
#include "tests/crash/forwarding_kv.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;
using weir::testing::TestSeed;

constexpr uint64_t kMiB = 1 << 20;
const ObjectId kObject{InodeId(7), 0};

class ExtentStoreTest : public ::testing::Test {
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

  FaultyDevice device_{std::make_unique<MemDevice>(80 * kMiB)};
  StoreOptions options_{.memory_bytes = 1 << 20,
                        .deferred_apply_bytes = 64 << 10,
                        .kv_write_buffer_bytes = 128 << 10};
  std::unique_ptr<ObjectStore> store_;
};

// Goal: whatever is asked, the store answers like a byte vector.
// Method: random operations on both, compared after each, with reopens in the middle.
TEST_F(ExtentStoreTest, AgreesWithTheModelOverRandomOperationsAndReopens) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 3; ++seed) {
    Prng prng(seed);
    MemObjectStore model;
    for (int i = 0; i < 12; ++i) {
      EXPECT_TRUE(DeleteSync(*store_, {InodeId(10 + i / 4), static_cast<uint64_t>(i % 4)}).ok());
    }
    for (int step = 0; step < 400; ++step) {
      const ObjectId id{InodeId(prng.Uniform(10, 12)), prng.Uniform(0, 3)};
      const uint64_t choice = prng.Uniform(0, 99);
      if (choice < 10) {
        const uint64_t offset = prng.Uniform(0, 600000), length = RandomSize(prng);
        ASSERT_TRUE(PunchSync(*store_, id, offset, length).ok());
        ASSERT_TRUE(PunchSync(model, id, offset, length).ok());
      } else if (choice < 25) {
        const ObjectId from{InodeId(prng.Uniform(10, 12)), prng.Uniform(0, 3)};
        const uint64_t length = RandomSize(prng);
        uint64_t from_offset = prng.Uniform(0, 60) * kBlockSize;
        const uint64_t offset =
            prng.Uniform(0, 60) * kBlockSize + (prng.Chance(0.7) ? 0 : prng.Uniform(0, 5000));
        if (prng.Chance(0.5)) from_offset += offset % kBlockSize;
        if (from == id) from_offset += offset + length;
        const Result<ObjectInfo> got = CopySync(*store_, {from, from_offset}, id, offset, length);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(got->size, CopySync(model, {from, from_offset}, id, offset, length)->size);
      } else if (choice < 60) {
        const uint64_t offset =
            prng.Chance(0.5) ? kBlockSize * prng.Uniform(0, 100) : prng.Uniform(0, 500000);
        Buffer data = RandomBytes(prng, RandomSize(prng) + 3);
        data = data.Slice(prng.Uniform(0, 2), data.size() - 3);  // often not aligned in memory
        const Result<ObjectInfo> got = WriteSync(*store_, id, offset, data);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(got->size, WriteSync(model, id, offset, data)->size);
      } else if (choice < 75) {
        const uint64_t size = prng.Uniform(0, 700000);
        ASSERT_TRUE(TruncateSync(*store_, id, size).ok());
        ASSERT_TRUE(TruncateSync(model, id, size).ok());
      } else if (choice < 80) {
        ASSERT_TRUE(DeleteSync(*store_, id).ok());
        ASSERT_TRUE(DeleteSync(model, id).ok());
      } else if (choice < 82) {
        const uint64_t first = prng.Uniform(0, 3);
        ASSERT_TRUE(DeleteInodeSync(*store_, id.inode, first).ok());
        ASSERT_TRUE(DeleteInodeSync(model, id.inode, first).ok());
      } else if (choice < 84) {
        Reopen();
      } else if (choice < 86) {  // not seen from outside
        store_->SetPieceBytes(prng.Chance(0.3) ? UINT64_MAX : kBlockSize * prng.Uniform(1, 32));
      }
      const uint64_t offset = prng.Uniform(0, 600000), length = prng.Uniform(0, 300000);
      const Result<Buffer> got = ReadRange(*store_, id, offset, length);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(got->view(), ReadRange(model, id, offset, length)->view())
          << "TEST_SEED=" << seed << " step " << step;
      EXPECT_EQ(StatSync(*store_, id)->size, StatSync(model, id)->size);
    }
    EXPECT_EQ(store_->Stats().objects, model.Stats().objects);
  }
  EXPECT_EQ(store_->Stats().checksum_errors, 0u);
}

// Goal: small writes stay readable when the device refuses to take them to their places.
// Method: the moves fail; then the cache drops what it may.
TEST_F(ExtentStoreTest, WhatCouldNotBeMovedOutlivesTheCache) {
  store_.reset();
  options_.kv_write_buffer_bytes = 4 * options_.deferred_apply_bytes;
  options_.wake = [] {};  // the test does what is due
  Open();
  auto& store = dynamic_cast<ExtentStore&>(*store_);
  const auto work_until = [&](const auto& waiter) {
    while (waiter.future.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      store.Work();
  };
  Prng prng(TestSeed());
  const auto write = [&](const ObjectId& id, uint64_t offset, const Buffer& data) {
    Waiter<Result<ObjectInfo>> waiter;
    store.Write(id, offset, data, {}, waiter.Callback());
    work_until(waiter);
    ASSERT_TRUE(waiter.future.get().ok());
  };
  const auto read = [&] {
    Waiter<Result<ObjectData>> waiter;
    store.Read(kObject, 0, 2 * options_.deferred_apply_bytes, waiter.Callback());
    work_until(waiter);
    return std::string(waiter.future.get()->bytes.view());
  };
  std::string expected;
  while (expected.size() <= options_.deferred_apply_bytes) {
    const Buffer block = RandomBytes(prng, kBlockSize);
    write(kObject, expected.size(), block);
    expected += block.view();
  }
  device_.FailAt(0, 1);
  EXPECT_TRUE(store.MoveOverlays());
  device_.ClearFaults();
  const Buffer large = RandomBytes(prng, 128 << 10);
  for (uint64_t i = 0; i < 200; ++i) write({InodeId(50), i}, kMaxObjectSize - large.size(), large);
  EXPECT_TRUE(read() == expected) << "an object was loaded without what waits for its place";
  while (store.MoveOverlays()) store.Work();
}

TEST_F(ExtentStoreTest, OperationsOnOneObjectTakeEffectInTheOrderOfTheCalls) {
  Prng prng(TestSeed());
  MemObjectStore model;
  std::vector<Waiter<Result<ObjectInfo>>> waiters(200);
  replication::Version version;
  for (auto& waiter : waiters) {
    const uint64_t offset =
        prng.Chance(0.5) ? kBlockSize * prng.Uniform(0, 8) : prng.Uniform(0, 40000);
    Buffer data = RandomBytes(prng, RandomSize(prng));
    (void)WriteSync(model, kObject, offset, data).ok();
    store_->Write(kObject, offset, data, {}, waiter.Callback());
  }
  for (auto& waiter : waiters) {
    const Result<ObjectInfo> info = waiter.future.get();
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_GT(info->version, version);
    version = info->version;
  }
  EXPECT_EQ(ReadAll(*store_, kObject)->view(), ReadAll(model, kObject)->view());
}

// Goal: whole blocks are read with their checksum, holes between them included, so that an answer
// needs no second pass over them; never with one that is not theirs.
TEST_F(ExtentStoreTest, WholeBlocksAreReadWithTheirChecksum) {
  Prng prng(TestSeed());
  ASSERT_TRUE(WriteSync(*store_, kObject, 0, RandomBytes(prng, 32 * kBlockSize)).ok());
  ASSERT_TRUE(WriteSync(*store_, kObject, 64 * kBlockSize, RandomBytes(prng, 8192 * 5)).ok());
  const auto crc_of = [this](uint64_t offset, uint64_t length) {
    Waiter<Result<ObjectData>> waiter;
    store_->Read(kObject, offset, length, waiter.Callback());
    const Result<ObjectData> read = waiter.future.get();
    EXPECT_EQ(read->bytes.size(), length);
    if (read->crc.has_value()) {
      EXPECT_EQ(*read->crc, Crc32c(read->bytes.data(), read->bytes.size()));
    }
    return read->crc;
  };
  EXPECT_TRUE(crc_of(0, 74 * kBlockSize).has_value());
  EXPECT_TRUE(crc_of(31 * kBlockSize, 34 * kBlockSize).has_value());
  EXPECT_TRUE(crc_of(40 * kBlockSize, kBlockSize).has_value());
  EXPECT_FALSE(crc_of(1, kBlockSize).has_value());
  EXPECT_FALSE(crc_of(0, kBlockSize + 1).has_value());
  ASSERT_TRUE(WriteSync(*store_, kObject, 100, RandomBytes(prng, 10)).ok());  // an overlay
  EXPECT_FALSE(crc_of(0, 8 * kBlockSize).has_value());
  EXPECT_TRUE(crc_of(kBlockSize, 8 * kBlockSize).has_value());
}

// Goal: what was damaged on its way changes nothing, and what is sent again does. Whole blocks,
// where the checksums of the blocks are joined; through the log; pieces of blocks; at the end.
TEST_F(ExtentStoreTest, ADamagedWriteIsRefusedAndChangesNothing) {
  Prng prng(TestSeed());
  const auto write = [this](uint64_t offset, Buffer data, uint32_t crc, bool append) {
    ObjectChange change{.id = kObject, .offset = offset, .data = std::move(data)};
    change.hints.crc = crc;
    change.terms.append = append;
    Waiter<Result<ObjectInfo>> waiter;
    store_->Change(std::move(change), waiter.Callback());
    return waiter.future.get().code();
  };
  const auto read = [this] {
    const Result<Buffer> all = ReadAll(*store_, kObject);
    EXPECT_TRUE(all.ok()) << all.status();
    return std::vector<uint8_t>(all->data(), all->data() + all->size());
  };
  std::vector<uint8_t> model;
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, size_t>>{
           {0, 1 << 20}, {4096, 4096}, {8192, 8192}, {100, 5000}, {1 << 20, 70000}, {3, 1}}) {
    for (const bool append : {false, true}) {
      Buffer data = Buffer::Aligned(size);
      for (size_t i = 0; i < size; ++i) data.data()[i] = static_cast<uint8_t>(prng.Next());
      const uint32_t crc = Crc32c(data.data(), size);
      EXPECT_EQ(write(offset, data, crc ^ 1, append), ErrorCode::kBadMessage);
      EXPECT_EQ(read(), model) << offset << "+" << size;
      EXPECT_EQ(write(offset, data, crc, append), ErrorCode::kOk);
      const uint64_t at = append ? model.size() : offset;
      model.resize(std::max<size_t>(model.size(), at + size));
      std::copy_n(data.data(), size, model.begin() + static_cast<ptrdiff_t>(at));
      EXPECT_EQ(read(), model) << offset << "+" << size;
    }
  }
}

TEST_F(ExtentStoreTest, VersionsKeepGrowingAcrossDeleteAndReopen) {
  replication::Version last;
  for (int i = 0; i < 4; ++i) {
    const Result<ObjectInfo> info = WriteSync(*store_, kObject, 0, Buffer::CopyOf("x"));
    ASSERT_TRUE(info.ok());
    EXPECT_GT(info->version, last);
    last = info->version;
    ASSERT_TRUE(DeleteSync(*store_, kObject).ok());
    EXPECT_EQ(StatSync(*store_, kObject)->version, replication::Version());
    Reopen();
  }
}

TEST_F(ExtentStoreTest, BitRotIsAnErrorAndCountedNeverWrongData) {
  Prng prng(TestSeed());
  Buffer data = RandomBytes(prng, 1 * kMiB);
  ASSERT_TRUE(WriteSync(*store_, kObject, 0, data).ok());
  device_.FlipBits(store_->LbaHint(kObject, 300000) + 17, 0x04);
  const Result<Buffer> bad = ReadRange(*store_, kObject, 290000, 20000);
  EXPECT_EQ(bad.code(), ErrorCode::kCorrupt) << bad.status();
  EXPECT_EQ(store_->Stats().checksum_errors, 1u);
  const Result<Buffer> good = ReadRange(*store_, kObject, 400000, 20000);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->view(), data.view().substr(400000, 20000));
  // Half a bad block must not be made good by a checksum over rubbish.
  EXPECT_FALSE(
      WriteSync(*store_, kObject, 300000 / kBlockSize * kBlockSize + 1, Buffer::CopyOf("abc"))
          .ok());
  // A whole new block heals it.
  ASSERT_TRUE(WriteSync(*store_, kObject, 0, data).ok());
  EXPECT_EQ(ReadAll(*store_, kObject)->view(), data.view());
}

// RocksDB on a region that is as full as the test says.
class FullKv final : public ForwardingKv {
 public:
  using ForwardingKv::ForwardingKv;
  uint64_t free_bytes() override { return full ? 0 : below_->free_bytes(); }
  std::atomic<bool> full{false};
};

TEST_F(ExtentStoreTest, WritesGoOnWhenACompactionHasMadeRoom) {
  const Result<Superblock> super = LoadSuperblock(device_);
  ASSERT_TRUE(store_->Close().ok());
  auto raw = OpenRawKvStore(device_, {super->kv_offset, super->kv_bytes}, {});
  ASSERT_TRUE(raw.ok()) << raw.status();
  auto owned = std::make_unique<FullKv>(std::move(*raw));
  FullKv& kv = *owned;
  auto store = std::make_unique<ExtentStore>(
      device_, std::move(owned), Region{super->data_offset, super->data_bytes}, options_);
  ASSERT_TRUE(store->Recover().ok());
  const Buffer data = Buffer::CopyOf("data");
  kv.full = true;
  // The store notices after it has answered the one that filled the region.
  Status status;
  while (status.ok()) status = WriteSync(*store, kObject, 0, data).status();
  EXPECT_EQ(status.code(), ErrorCode::kNoSpace);
  kv.full = false;
  EXPECT_TRUE(WriteSync(*store, kObject, 0, data).ok());
  EXPECT_TRUE(store->Close().ok());
}

TEST_F(ExtentStoreTest, FullDiskSaysSoAndDeletesGiveTheSpaceBack) {
  Prng prng(TestSeed());
  const Buffer data = RandomBytes(prng, 4 * kMiB);
  for (int round = 0; round < 3; ++round) {
    uint64_t written = 0;
    Result<ObjectInfo> info = ObjectInfo{};
    while ((info = WriteSync(*store_, {InodeId(1), written}, 0, data)).ok()) ++written;
    EXPECT_EQ(info.code(), ErrorCode::kNoSpace);
    EXPECT_GE(written, 10u) << "round " << round;
    // Single blocks too, until even those do not fit; and what is there stays readable.
    uint64_t small = 0;
    while ((info = WriteSync(*store_, {InodeId(2), small}, 0, data.Slice(0, 4096))).ok()) ++small;
    EXPECT_EQ(info.code(), ErrorCode::kNoSpace);
    EXPECT_EQ(ReadAll(*store_, {InodeId(1), 0})->view(), data.view());
    EXPECT_TRUE(TruncateSync(*store_, {InodeId(1), 0}, 5001).ok());
    EXPECT_TRUE(DeleteInodeSync(*store_, InodeId(1), 0).ok());
    EXPECT_TRUE(DeleteInodeSync(*store_, InodeId(2), 0).ok());
    EXPECT_EQ(store_->Stats().objects, 0u);
    // The mover of small writes gives back what it is just moving when it has moved it.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (store_->Stats().used_bytes > 0 && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
    EXPECT_EQ(store_->Stats().used_bytes, 0u);
    if (round == 1) Reopen();
  }
}

TEST_F(ExtentStoreTest, ObjectsOfAnInodeAreDeletedInSteps) {
  const InodeId inode(7);
  for (uint64_t index = 0; index < 10; ++index) {
    ASSERT_TRUE(WriteSync(*store_, {inode, index}, 0, Buffer::CopyOf("x")).ok());
    if (index == 4) Reopen();  // half of them are on the disk only
  }
  ASSERT_TRUE(WriteSync(*store_, {InodeId(8), 0}, 0, Buffer::CopyOf("y")).ok());
  std::vector<uint64_t> left;
  uint64_t next = 1;
  do {
    const auto answer = DeleteSomeSync(*store_, inode, next, 4);
    ASSERT_TRUE(answer.ok()) << answer.status();
    next = answer->next_index;
    EXPECT_EQ(answer->freed_bytes, (next > 0 ? 4 : 1) * kBlockSize);
    left.push_back(store_->Stats().objects);
  } while (next > 0);
  EXPECT_EQ(left, (std::vector<uint64_t>{7, 3, 2}));
  EXPECT_EQ(StatSync(*store_, {inode, 0})->size, 1u) << "below the first index";
  EXPECT_EQ(StatSync(*store_, {InodeId(8), 0})->size, 1u);
}

TEST_F(ExtentStoreTest, SmallWritesCostOneFlushPerGroup) {
  ASSERT_TRUE(WriteSync(*store_, kObject, 0, Buffer::AlignedZeros(64 << 10)).ok());
  // RocksDB may flush for itself meanwhile, though hardly each time; with two for a group no round
  // has eight.
  uint64_t least = UINT64_MAX;
  for (int round = 0; round < 50 && least != 8; ++round) {
    const uint64_t before = device_.counters().flushes;
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(WriteSync(*store_, kObject, 8192 * i, Buffer::AlignedZeros(4096)).ok());
    }
    least = std::min(least, device_.counters().flushes - before);
  }
  EXPECT_EQ(least, 8u);
}

TEST_F(ExtentStoreTest, RangesBeyondTheLargestObjectAreRefused) {
  EXPECT_EQ(WriteSync(*store_, kObject, kMaxObjectSize, Buffer::CopyOf("x")).code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(WriteSync(*store_, kObject, UINT64_MAX, Buffer::CopyOf("x")).code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(TruncateSync(*store_, kObject, kMaxObjectSize + 1).code(), ErrorCode::kInvalid);
  EXPECT_EQ(ReadRange(*store_, kObject, UINT64_MAX, 10)->size(), 0u);
}

}  // namespace
}  // namespace weir::osd
