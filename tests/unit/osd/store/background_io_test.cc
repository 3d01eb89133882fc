// What the store does in the background asks its meter, all of it, and never makes the foreground
// wait for ever.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "common/disk/io_meter.h"
#include "common/disk/mem_device.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;

constexpr uint64_t kMiB = 1 << 20;

class CountingMeter : public IoMeter {
 public:
  void* Begin(const Io& io) override {
    const std::lock_guard lock(mutex_);
    EXPECT_LE(io.bytes, kPieceBytes);
    (io.write ? written : read) += io.bytes;
    return this;
  }
  void End(void* ticket) override { EXPECT_EQ(ticket, this); }
  void SetUrgent(bool) override {}

  uint64_t written = 0, read = 0;

 protected:
  std::mutex mutex_;
};

// Lets nothing go that is not urgent: a scheduler whose device is full for ever.
class StuckMeter final : public CountingMeter {
 public:
  void* Begin(const Io& io) override {
    CountingMeter::Begin(io);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || urgent_ || io.urgent; });
    return this;
  }
  void SetUrgent(bool urgent) override {
    const std::lock_guard lock(mutex_);
    urgent_ = urgent;
    times += urgent ? 1 : 0;
    changed_.notify_all();
  }
  void LetAllGo() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  int times = 0;

 private:
  std::condition_variable changed_;
  bool urgent_ = false;
  bool ended_ = false;
};

class BackgroundIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeStore(device_, {}).ok());
    auto store = OpenStore(device_, options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = std::move(*store);
  }
  // Small writes: each goes through RocksDB's log, its tables in the end, and to its place.
  void WriteSmall(int count) {
    const Buffer block = Buffer::CopyOf(std::string(4096, 'x'));
    for (int i = 0; i < count; ++i) {
      const ObjectId id{InodeId(1 + static_cast<uint64_t>(i) % 40), 0};
      const uint64_t offset = static_cast<uint64_t>(i) / 40 * 4096 % kMiB;
      const Result<ObjectInfo> written = WriteSync(*store_, id, offset, block);
      ASSERT_TRUE(written.ok()) << written.status();
    }
  }

  MemDevice device_{160 * kMiB};
  StoreOptions options_{.memory_bytes = 1 << 20,
                        .deferred_apply_bytes = 64 << 10,
                        .kv_write_buffer_bytes = 256 << 10};
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(BackgroundIoTest, AllOfItAsks) {
  auto meter = std::make_shared<CountingMeter>();
  store_->SetBackgroundMeter(meter);
  WriteSmall(2000);
  const StoreStats stats = store_->Stats();
  EXPECT_EQ(stats.unmetered_bytes, 0u);
  EXPECT_GT(stats.background_bytes, 4 * kMiB);  // moved overlays, and tables that held them
  store_->SetBackgroundMeter(nullptr);
  EXPECT_TRUE(store_->Close().ok());
  EXPECT_GT(meter->read, 0u);  // compactions
  EXPECT_GT(meter->written, 4 * kMiB);
}

TEST_F(BackgroundIoTest, WithNobodyToAskItIsCountedAsUnmetered) {
  WriteSmall(500);
  EXPECT_GT(store_->Stats().unmetered_bytes, 0u);
  EXPECT_EQ(store_->Stats().background_bytes, 0u);
  EXPECT_TRUE(store_->Close().ok());
}

// Goal: a write that RocksDB holds back until a flush is done never waits for a flush that waits
// for the device. Method: the meter lets only urgent I/O go; far more is written than fits into
// RocksDB's buffers and into memory.
TEST_F(BackgroundIoTest, AForegroundThatWaitsForTheBackgroundMakesItUrgent) {
  auto meter = std::make_shared<StuckMeter>();
  store_->SetBackgroundMeter(meter);
  WriteSmall(2000);
  EXPECT_GT(meter->times, 0);
  meter->LetAllGo();  // what waits must let go before the store closes
  store_->SetBackgroundMeter(nullptr);
  EXPECT_TRUE(store_->Close().ok());
}

}  // namespace
}  // namespace weir::osd
