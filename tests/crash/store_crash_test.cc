// Power loss at hundreds of seeded points of a busy store: whatever was acknowledged is there, and
// every object has the bytes of before or after an operation, never a mix.
//
// RocksDB's own threads make the exact order of device requests differ from run to run; the
// property must hold wherever the crash hits, so a seed names a workload and a rough place, not one
// schedule.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/disk/faulty_device.h"
#include "common/testing/seed.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using testing::History;

constexpr uint64_t kDeviceBytes = 64 << 20;
constexpr size_t kObjects = 12;

StoreOptions SmallOptions() {
  // Tiny buffers: flushes, compactions and the move of overlays happen all the time.
  return {.memory_bytes = 1 << 20,
          .deferred_write_max = 8192,
          .deferred_apply_bytes = 64 << 10,
          .kv_write_buffer_bytes = 64 << 10};
}

// Formatted once; every schedule starts from a copy.
const MemDevice& FreshMedium() {
  static const std::unique_ptr<MemDevice> medium = [] {
    auto device = std::make_unique<MemDevice>(kDeviceBytes);
    WEIR_CHECK(MakeStore(*device, {.identity = {.cluster_uuid = "c", .osd_uuid = "o"}}).ok());
    WEIR_CHECK((*OpenStore(*device, SmallOptions()))->Close().ok());
    return device;
  }();
  return *medium;
}

// Half of the time somebody is in a hurry, and large writes go to the device in pieces.
uint64_t RandomPieceBytes(Prng& prng) {
  return prng.Chance(0.5) ? UINT64_MAX : kBlockSize * prng.Uniform(1, 16);
}

struct Outcome {
  std::string wrong;  // empty: all is well
  size_t acknowledged = 0;
};

// One life: open, work until the power fails, power on, open again, check. Twice, on the same disk.
Outcome RunSchedule(uint64_t seed, bool ignore_flushes) {
  FaultyDevice device(FreshMedium().Clone());
  Prng prng(seed);
  History history(kObjects);
  for (int life = 0; life < 2; ++life) {
    device.IgnoreFlushes(ignore_flushes);
    const uint64_t depth = prng.Uniform(1, 8);
    const uint64_t piece_bytes = RandomPieceBytes(prng);
    device.PowerLossAt(prng.Uniform(1, 160));
    {
      Result<std::unique_ptr<ObjectStore>> store = OpenStore(device, SmallOptions());
      if (store.ok()) (*store)->SetPieceBytes(piece_bytes);
      for (int i = 0; store.ok() && i < 200 && !device.powerless(); ++i) {
        history.WaitBelow(depth);
        history.Issue(**store, prng);
      }
      history.WaitAll();
    }
    device.PowerOn(prng.Next());
    Result<std::unique_ptr<ObjectStore>> store = OpenStore(device, SmallOptions());
    if (!store.ok()) return {store.status().message()};
    const std::string wrong = history.Check(**store, true);
    if (!wrong.empty()) return {"life " + std::to_string(life) + ", " + wrong};
  }
  return {"", history.acknowledged()};
}

// A few at a time: RocksDB rests for a second after an error of its background work.
constexpr int kParallel = 16;

TEST(StoreCrashTest, AcknowledgedSurvivesAndObjectsStayWholeAtSeededCrashPoints) {
  const uint64_t base = weir::testing::TestSeed();
  (void)FreshMedium();
  std::atomic<uint64_t> next{0}, acknowledged{0};
  std::mutex mutex;
  std::string wrong;
  std::vector<std::thread> threads;
  for (int t = 0; t < kParallel; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = next++; i < 100; i = next++) {  // two crashes each
        const Outcome outcome = RunSchedule(base + i, false);
        acknowledged += outcome.acknowledged;
        std::lock_guard lock(mutex);
        if (!outcome.wrong.empty()) {
          wrong = "TEST_SEED=" + std::to_string(base + i) + ": " + outcome.wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, "");
  // The schedules must reach into the work, not only into the opening.
  EXPECT_GT(acknowledged, 2000u);
}

// Goal: the test above would notice a missing flush. Method: a disk whose flushes do nothing.
TEST(StoreCrashTest, CheckerGoesRedWhenTheDiskIgnoresFlushes) {
  const uint64_t base = weir::testing::TestSeed();
  int red = 0;
  for (uint64_t i = 0; i < 10; ++i) red += RunSchedule(base + i, true).wrong.empty() ? 0 : 1;
  EXPECT_GE(red, 5);
}

// Goal: an error of the medium is an error to the caller, never a crash or wrong data.
// Method: every 7th, 11th ... request fails for a while; what the store then holds must be allowed.
TEST(StoreCrashTest, ErrorsAtEveryNthRequestAreCleanErrors) {
  Prng prng(weir::testing::TestSeed());
  for (const uint64_t period : {3, 7, 11, 23, 47, 95}) {
    FaultyDevice device(FreshMedium().Clone());
    History history(kObjects);
    Result<std::unique_ptr<ObjectStore>> store = OpenStore(device, SmallOptions());
    ASSERT_TRUE(store.ok()) << store.status();
    device.FailAt(prng.Uniform(0, period), period);
    (*store)->SetPieceBytes(RandomPieceBytes(prng));
    for (int i = 0; i < 100; ++i) {
      history.WaitBelow(4);
      history.Issue(**store, prng);
    }
    history.WaitAll();
    EXPECT_GT(history.failed(), 0u);
    store->reset();
    device.ClearFaults();
    store = OpenStore(device, SmallOptions());
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(history.Check(**store, false), "") << "period " << period;
  }
}

// Goal: a re-formatted disk never shows or replays anything of its former life.
TEST(StoreCrashTest, ReformattedDiskForgetsItsFormerLife) {
  FaultyDevice device(FreshMedium().Clone());
  Prng prng(weir::testing::TestSeed());
  for (int life = 0; life < 4; ++life) {
    History history(kObjects);
    {
      Result<std::unique_ptr<ObjectStore>> store = OpenStore(device, SmallOptions());
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ((*store)->Stats().objects, 0u);
      for (int i = 0; i < 150; ++i) {
        history.WaitBelow(4);
        history.Issue(**store, prng);
      }
      history.WaitAll();
      device.PowerLossAt(0);  // no clean end
    }
    device.PowerOn(prng.Next());
    ASSERT_TRUE(MakeStore(device, {.force = true}).ok());
  }
}

}  // namespace
}  // namespace weir::osd
