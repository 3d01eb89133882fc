// The same promises for every KvStore: in memory, on RocksDB in a directory, on RocksDB on a raw
// device.
#include "common/kv/kv_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "common/base/prng.h"
#include "common/disk/faulty_device.h"
#include "common/disk/mem_device.h"
#include "common/kv/mem_kv_store.h"
#include "common/kv/rocks_kv_store.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

struct MemBackend {
  std::unique_ptr<KvStore> Open() { return std::make_unique<MemKvStore>(); }
  static constexpr bool kPersists = false;
};

struct DirectoryBackend {
  DirectoryBackend() {
    path = (std::filesystem::temp_directory_path() / ("weir_kv_" + std::to_string(RandomSeed())))
               .string();
  }
  ~DirectoryBackend() { std::filesystem::remove_all(path); }
  std::unique_ptr<KvStore> Open() {
    Result<std::unique_ptr<KvStore>> store =
        OpenRocksKvStore(path, {.cache_bytes = 1 << 20, .write_buffer_bytes = 64 << 10});
    WEIR_CHECK(store.ok(), store.status().message());
    return std::move(*store);
  }
  static constexpr bool kPersists = true;
  std::string path;
};

struct RawBackend {
  RawBackend() { WEIR_CHECK(FormatRawKv(device, region).ok()); }
  std::unique_ptr<KvStore> Open() {
    auto store =
        OpenRawKvStore(device, region, {.cache_bytes = 1 << 20, .write_buffer_bytes = 64 << 10});
    WEIR_CHECK(store.ok(), store.status().message());
    return std::move(*store);
  }
  static constexpr bool kPersists = true;
  MemDevice device{40 << 20};
  Region region{1 << 20, 32 << 20};
};

template <typename Backend>
class KvStoreTest : public ::testing::Test {
 protected:
  Backend backend_;
};
using Backends = ::testing::Types<MemBackend, DirectoryBackend, RawBackend>;
TYPED_TEST_SUITE(KvStoreTest, Backends);

TYPED_TEST(KvStoreTest, BatchesApplyInOrderAndKeysCompareAsUnsignedBytes) {
  auto store = this->backend_.Open();
  WriteBatch batch;
  batch.Put("b", "1");
  batch.Put("\xff", "high");
  batch.Put("a", "1");
  batch.Put("c", "1");
  batch.Delete("a");
  batch.Put("b", "2");
  batch.DeleteRange("c", "d");
  ASSERT_TRUE(store->Apply(batch, Durability::kDurable).ok());
  EXPECT_EQ(store->Get("a").code(), ErrorCode::kNotFound);
  EXPECT_EQ(*store->Get("b"), "2");
  EXPECT_EQ(store->Get("c").code(), ErrorCode::kNotFound);
  auto it = store->NewIterator();
  it->Seek("");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "b");
  it->Next();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "\xff");
  it->Next();
  EXPECT_FALSE(it->Valid());
  EXPECT_TRUE(it->status().ok());
}

TYPED_TEST(KvStoreTest, WhatHasBeenReadIsInMemoryAndWhatIsNotKeepsNobodyWaiting) {
  auto store = this->backend_.Open();
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  ASSERT_TRUE(store->Apply(batch, Durability::kDurable).ok());
  EXPECT_EQ(*store->GetInMemory("a"), "1");  // was just written
  if constexpr (TypeParam::kPersists) {
    store.reset();
    store = this->backend_.Open();
    EXPECT_EQ(store->GetInMemory("a").code(), ErrorCode::kAgain);
    auto cold = store->NewIteratorInMemory("c");
    cold->Seek("a");
    EXPECT_FALSE(cold->Valid());
    EXPECT_EQ(cold->status().code(), ErrorCode::kAgain);
  }
  EXPECT_EQ(*store->Get("a"), "1");
  EXPECT_EQ(*store->GetInMemory("a"), "1");
  EXPECT_EQ(store->GetInMemory("aa").code(), ErrorCode::kNotFound);
  auto it = store->NewIteratorInMemory("c");
  it->Seek("a");
  ASSERT_TRUE(it->Valid());
  it->Next();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->value(), "2");
  it->Next();
  EXPECT_TRUE(it->status().ok());
}

TYPED_TEST(KvStoreTest, WhatLiesBehindTheEndNeedNotBeSeenAndNothingBeforeItIsMissed) {
  auto store = this->backend_.Open();
  WriteBatch batch;
  for (const char* key : {"a", "b", "c"}) batch.Put(key, key);
  batch.Delete("b");
  ASSERT_TRUE(store->Apply(batch, Durability::kBuffered).ok());
  auto it = store->NewIteratorBefore("c");
  it->Seek("a");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "a");
  it->Next();
  EXPECT_TRUE(!it->Valid() || it->key() == "c");
  EXPECT_TRUE(it->status().ok());
}

TYPED_TEST(KvStoreTest, IteratorsSeeTheStoreAsItWasWhenTheyWereMade) {
  auto store = this->backend_.Open();
  WriteBatch batch;
  batch.Put("k", "old");
  ASSERT_TRUE(store->Apply(batch, Durability::kBuffered).ok());
  auto it = store->NewIterator();
  batch.Clear();
  batch.Put("k", "new");
  batch.Put("k2", "new");
  ASSERT_TRUE(store->Apply(batch, Durability::kBuffered).ok());
  it->Seek("k");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->value(), "old");
  it->Next();
  EXPECT_FALSE(it->Valid());
}

// Goal: agrees with a map over random batches, enough of them for flushes, compactions and (where
// there is something to reopen) recoveries.
TYPED_TEST(KvStoreTest, AgreesWithAMapAndSurvivesReopening) {
  Prng prng(weir::testing::TestSeed());
  std::map<std::string, std::string> model;
  auto store = this->backend_.Open();
  for (int step = 0; step < 400; ++step) {
    WriteBatch batch;
    for (uint64_t n = prng.Uniform(1, 8); n > 0; --n) {
      const std::string key = "key" + std::to_string(prng.Uniform(0, 300));
      if (prng.Chance(0.7)) {
        std::string value(prng.Uniform(0, 3000), static_cast<char>('a' + step % 26));
        batch.Put(key, value);
        model[key] = value;
      } else {
        batch.Delete(key);
        model.erase(key);
      }
    }
    const bool durable = prng.Chance(0.3);
    ASSERT_TRUE(store->Apply(batch, durable ? Durability::kDurable : Durability::kBuffered).ok());
    if (TypeParam::kPersists && step % 100 == 99) {
      store.reset();
      store = this->backend_.Open();
    }
  }
  auto it = store->NewIterator();
  it->Seek("");
  for (const auto& [key, value] : model) {
    ASSERT_TRUE(it->Valid()) << key;
    EXPECT_EQ(it->key(), key);
    EXPECT_EQ(it->value(), value);
    it->Next();
  }
  EXPECT_FALSE(it->Valid());
}

TEST(RawKvStoreTest, FullRegionIsNoSpaceAndFreeBytesFall) {
  RawBackend backend;
  auto opened = OpenRawKvStore(backend.device, backend.region, {.write_buffer_bytes = 2 << 20});
  ASSERT_TRUE(opened.ok());
  RawKvStore& store = **opened;
  const uint64_t free = store.free_bytes();
  Prng prng(1);
  Status status;
  for (int i = 0; i < 2000 && status.ok(); ++i) {
    WriteBatch batch;
    batch.Put("k" + std::to_string(i), std::string(128 << 10, static_cast<char>(prng.Next())));
    status = store.Apply(batch, Durability::kDurable);
  }
  EXPECT_FALSE(status.ok());
  EXPECT_LT(store.free_bytes(), free / 2);
}

// Lets everything go and remembers whether it was in a hurry.
class HurryMeter final : public IoMeter {
 public:
  void* Begin(const Io&) override { return nullptr; }
  void End(void*) override {}
  void SetUrgent(bool is) override {
    urgent = is;
    if (is) ++hurries;
  }
  std::atomic<bool> urgent{false};
  std::atomic<int> hurries{0};
};

TEST(RawKvStoreTest, WhoeverAwaitsFreeSpaceHurriesWhatIsOwedAndDoesNotWaitForNothing) {
  RawBackend backend;
  auto opened = OpenRawKvStore(backend.device, backend.region, {});
  ASSERT_TRUE(opened.ok());
  const auto meter = std::make_shared<HurryMeter>();
  (*opened)->SetMeter(meter);
  EXPECT_TRUE((*opened)->AwaitFree((*opened)->free_bytes()));
  EXPECT_EQ(meter->hurries, 0);
  EXPECT_FALSE((*opened)->AwaitFree((*opened)->total_bytes() + 1));
  EXPECT_EQ(meter->hurries, 1);
  EXPECT_FALSE(meter->urgent);
}

// Goal: a store on an image takes more of its disk instead of being full, and knows it afterwards.
TEST(RawKvStoreTest, GrowsWhenHalfFullAndRemainsSo) {
  constexpr uint64_t kFirst = 8 << 20;
  MemDevice device(kFirst);
  ASSERT_TRUE(FormatRawKv(device, {0, kFirst}).ok());
  const KvOptions options{.write_buffer_bytes = 256 << 10, .grows = true};
  auto store = OpenRawKvStore(device, {0, device.size()}, options);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto key = [](int i) { return "k" + std::to_string(i); };
  const auto value = [](int i) { return std::string(64 << 10, static_cast<char>(i)); };
  for (int i = 0; i < 500; ++i) {
    WriteBatch batch;
    batch.Put(key(i), value(i));
    ASSERT_TRUE((*store)->Apply(batch, Durability::kDurable).ok()) << i;
    ASSERT_TRUE((*store)->AwaitRoom()) << i;
  }
  EXPECT_GT((*store)->total_bytes(), 4 * kFirst);
  EXPECT_LE((*store)->total_bytes(), device.size());
  const uint64_t total = (*store)->total_bytes();
  (*store).reset();
  // As a crash leaves it between the growth of the image and that of the region.
  ASSERT_TRUE(device.Grow(device.size() + (1 << 20)).ok());
  store = OpenRawKvStore(device, {0, device.size()}, {.compact = false});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->total_bytes(), total);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(*(*store)->Get(key(i)), value(i)) << i;
}

// Goal: no moment of growing is one at which a crash loses something. Method: the power fails at
// one write after the other, over several growths, and everything answered must be there.
TEST(RawKvStoreTest, GrowingSurvivesAPowerLossAtAnyWrite) {
  constexpr uint64_t kFirst = 4 << 20;
  constexpr int kPuts = 100, kRuns = 60;
  const KvOptions options{.write_buffer_bytes = 256 << 10, .grows = true};
  const auto key = [](int i) { return "k" + std::to_string(i); };
  uint64_t mutations = 0;  // of a run without a loss
  for (uint64_t run = 0; run <= kRuns; ++run) {
    FaultyDevice device(std::make_unique<MemDevice>(kFirst));
    ASSERT_TRUE(FormatRawKv(device, {0, kFirst}).ok());
    auto store = OpenRawKvStore(device, {0, device.size()}, options);
    ASSERT_TRUE(store.ok()) << store.status();
    const uint64_t before = device.mutations();
    if (run > 0) device.PowerLossAt(run * mutations / (kRuns + 1));
    int acked = 0;
    for (Status status; acked < kPuts; ++acked) {
      WriteBatch batch;
      batch.Put(key(acked), std::string(64 << 10, static_cast<char>(acked)));
      if (!(*store)->Apply(batch, Durability::kDurable).ok()) break;
    }
    if (run == 0) {
      ASSERT_EQ(acked, kPuts);
      ASSERT_GT((*store)->total_bytes(), 2 * kFirst);
      mutations = device.mutations() - before;
    }
    (*store).reset();
    device.PowerOn(weir::testing::TestSeed() + run);
    store = OpenRawKvStore(device, {0, device.size()}, options);
    ASSERT_TRUE(store.ok()) << "run " << run << ": " << store.status();
    for (int i = 0; i < acked; ++i) {
      ASSERT_EQ(*(*store)->Get(key(i)), std::string(64 << 10, static_cast<char>(i)))
          << "run " << run << ", put " << i << " of " << acked;
    }
  }
}

// Goal: a disk below that has no more room is noticed while there is some.
TEST(RawKvStoreTest, WithoutAnImageThatGrowsItHasNoRoomBeforeItFails) {
  RawBackend backend;
  auto opened = OpenRawKvStore(backend.device, backend.region,
                               {.write_buffer_bytes = 256 << 10, .grows = false});
  ASSERT_TRUE(opened.ok());
  RawKvStore& store = **opened;
  int puts = 0;
  for (; store.AwaitRoom(); ++puts) {
    WriteBatch batch;
    batch.Put("k" + std::to_string(puts), std::string(64 << 10, 'x'));
    ASSERT_TRUE(store.Apply(batch, Durability::kDurable).ok()) << puts;
  }
  EXPECT_GT(puts, 200);
  for (int i = 0; i < puts; ++i) {
    WriteBatch batch;
    batch.Delete("k" + std::to_string(i));
    ASSERT_TRUE(store.Apply(batch, Durability::kDurable).ok()) << i;
  }
}

TEST(MemKvStoreTest, FailsWhenItIsToldToAndChangesNothingThen) {
  MemKvStore store;
  WriteBatch batch;
  batch.Put("k", "0");
  store.FailWith(Status(ErrorCode::kIo, "planted"), 2);
  for (const bool sound : {true, true, false, false}) {
    EXPECT_EQ(store.Apply(batch, Durability::kDurable).ok(), sound);
  }
  batch.Put("k", "1");
  EXPECT_EQ(store.Apply(batch, Durability::kDurable).code(), ErrorCode::kIo);
  EXPECT_EQ(*store.Get("k"), "0");
  store.FailWith(Status::Ok());
  EXPECT_TRUE(store.Apply(batch, Durability::kDurable).ok());
  EXPECT_EQ(*store.Get("k"), "1");
}

TEST(RawKvStoreTest, UnformattedOrDamagedRegionIsRefused) {
  MemDevice device(16 << 20);
  const Region region{0, 16 << 20};
  EXPECT_EQ(OpenRawKvStore(device, region, {}).code(), ErrorCode::kCorrupt);
  ASSERT_TRUE(FormatRawKv(device, region).ok());
  ASSERT_TRUE(OpenRawKvStore(device, region, {}).ok());
  // One superblock may be lost, both may not.
  ASSERT_TRUE(ZeroRange(device, 0, kBlockSize).ok());
  ASSERT_TRUE(OpenRawKvStore(device, region, {}).ok());
  ASSERT_TRUE(ZeroRange(device, kBlockSize, kBlockSize).ok());
  EXPECT_EQ(OpenRawKvStore(device, region, {}).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(FormatRawKv(device, {0, 1 << 20}).code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace weir
