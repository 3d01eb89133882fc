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
#include "common/disk/le_bytes.h"
#include "common/kv/rocks_kv_store.h"
#include "common/testing/seed.h"
#include "osd/format/onode_format.h"
#include "osd/store/store_check.h"
#include "osd/store/superblock.h"
#include "tests/crash/store_harness.h"

namespace weir::osd {
namespace {

using namespace weir::osd::testing;

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

// Goal: a disk of format 3 opens, whole, wherever the power fails while it becomes one of format 4.
// Method: a power loss at every write and flush of the opening, what was not flushed lost by seed.
TEST(StoreCrashTest, ADiskOfFormat3SurvivesAPowerLossAtEachStepOfItsUpgrade) {
  constexpr ObjectId kId{InodeId(5), 0};
  Prng prng(weir::testing::TestSeed());
  const Buffer data = RandomBytes(prng, 40'000);
  auto medium = FreshMedium().Clone();
  {
    auto store = *OpenStore(*medium, SmallOptions());
    ASSERT_TRUE(WriteSync(*store, kId, 0, data).ok());
    ASSERT_TRUE(store->Close().ok());
  }
  Superblock super = *LoadSuperblock(*medium);
  {
    auto kv = *OpenRawKvStore(*medium, {super.kv_offset, super.kv_bytes}, {});
    const OnodeHead head = *DecodeHead(*kv->Get(HeadKey(kId)));
    std::string old(1, '\1');  // a head of version 1
    PutLe(old, head.size);
    PutLe(old, head.version.sequence);
    PutLe(old, head.shards);
    WriteBatch batch;
    batch.Put(HeadKey(kId), old);
    ASSERT_TRUE(kv->Apply(batch, Durability::kDurable).ok());
  }
  super.version = 3;
  super.life = 0;
  ++super.generation;
  ASSERT_TRUE(StoreSuperblock(*medium, super).ok());

  bool reached_the_end = false;
  for (uint64_t step = 0; !reached_the_end; ++step) {
    FaultyDevice failing(medium->Clone());
    failing.PowerLossAt(step);
    { (void)OpenStore(failing, SmallOptions()); }
    reached_the_end = !failing.powerless();
    failing.PowerOn(prng.Next());
    FaultyDevice device(failing.CloneMedium());
    const Result<CheckReport> report = CheckStore(device, {.deep = true});
    ASSERT_TRUE(report.ok()) << step << ": " << report.status();
    EXPECT_TRUE(report->findings.clean()) << step << ": " << ToText(*report);
    const uint64_t life = ReadIdentity(device)->life;
    Result<std::unique_ptr<ObjectStore>> store = OpenStore(device, SmallOptions());
    ASSERT_TRUE(store.ok()) << step << ": " << store.status();
    EXPECT_EQ(ReadAll(**store, kId)->view(), data.view()) << step;
    EXPECT_EQ(*ReadFormatVersion(device), 4u);
    EXPECT_EQ(ReadIdentity(device)->life, life + 1);
    ASSERT_TRUE(WriteSync(**store, kId, 0, data).ok());
    ASSERT_LT(step, 100u);
  }
}

// Goal: an operation that names itself is made once, over power losses, however often it is asked
// for. Method: a session appends a record per request to a few objects; after each power loss
// it asks again for what was not answered, and sometimes for what was. In the end every record that
// was answered is where the answer said, and none is there twice.
class OnceCrash {
 public:
  explicit OnceCrash(uint64_t seed)
      : prng_(seed), device_(std::make_unique<FaultyDevice>(FreshMedium().Clone())) {}

  std::string Run() {
    for (int life = 0; life < 4 && wrong_.empty(); ++life) Live(life == 3);
    return wrong_;
  }
  [[nodiscard]] size_t answered() const { return answered_; }

 private:
  struct Asked {
    ObjectId id;
    uint64_t number = 0;
    std::string record;
    std::optional<uint64_t> offset;  // of the answer
  };
  static constexpr SlotId kSlot{1, 3};

  void Live(bool last) {
    if (!last) device_->PowerLossAt(prng_.Uniform(1, 120));
    Result<std::unique_ptr<ObjectStore>> store = OpenStore(*device_, SmallOptions());
    for (int i = 0; store.ok() && i < 60 && !device_->powerless(); ++i) Step(**store);
    if (last) return Look(**store);
    if (store.ok()) store->reset();
    device_->PowerOn(prng_.Next());
    device_ = std::make_unique<FaultyDevice>(device_->CloneMedium());
    const Result<CheckReport> report = CheckStore(*device_, {.deep = true});
    if (!report.ok()) wrong_ = report.status().message();
    if (report.ok() && !report->findings.clean()) wrong_ = ToText(*report);
  }

  void Step(ObjectStore& store) {
    auto open = std::find_if(asked_.begin(), asked_.end(),
                             [](const Asked& asked) { return !asked.offset.has_value(); });
    if (open == asked_.end() && !asked_.empty() && prng_.Chance(0.3)) {
      return Ask(store, asked_.back());
    }
    if (open == asked_.end()) {
      const uint64_t number = asked_.size() + 1;
      asked_.push_back({{InodeId(prng_.Uniform(5, 8)), 0}, number, Record(number), {}});
      open = std::prev(asked_.end());
    }
    Ask(store, *open);
  }
  static std::string Record(uint64_t number) {
    const std::string digits = std::to_string(100000 + number);
    return "<" + digits + std::string(number % 7 * 1000, 'x') + ">";
  }
  void Ask(ObjectStore& store, Asked& asked) {
    ObjectChange change{.id = asked.id, .data = Buffer::CopyOf(asked.record)};
    // All before were answered, but the floors lag, so that late copies find their ids.
    const uint64_t floor = asked.number > 3 ? asked.number - 3 : 0;
    change.terms = {.slot = kSlot,
                    .chain_version = 1,
                    .op = {.session = 9, .number = asked.number, .session_floor = floor},
                    .append = true};
    Waiter<Result<ObjectInfo>> waiter;
    store.Change(std::move(change), waiter.Callback());
    const Result<ObjectInfo> info = waiter.future.get();
    if (!info.ok()) return;
    if (!info->append_offset.has_value()) wrong_ = "an append without an offset";
    if (asked.offset.has_value() && asked.offset != info->append_offset) {
      wrong_ = "a retry of " + std::to_string(asked.number) + " went elsewhere";
    }
    asked.offset = info->append_offset;
    ++answered_;
  }
  void Look(ObjectStore& store) {
    std::map<ObjectId, std::string> bytes;
    for (const Asked& asked : asked_) {
      bytes[asked.id] = std::string(ReadAll(store, asked.id)->view());
      const std::string& found = bytes[asked.id];
      const size_t at = found.find(asked.record.substr(0, 7));
      const bool twice = at != std::string::npos &&
                         found.find(asked.record.substr(0, 7), at + 1) != at &&
                         found.find(asked.record.substr(0, 7), at + 1) != std::string::npos;
      if (twice) wrong_ = "record " + std::to_string(asked.number) + " is there twice";
      if (!asked.offset.has_value()) continue;
      if (found.compare(*asked.offset, asked.record.size(), asked.record) != 0) {
        wrong_ = "record " + std::to_string(asked.number) + " is not where the answer said";
      }
    }
  }

  Prng prng_;
  std::unique_ptr<FaultyDevice> device_;
  std::vector<Asked> asked_;  // number - 1
  size_t answered_ = 0;
  std::string wrong_;
};

TEST(StoreCrashTest, WhatNamesItselfIsMadeOnceOverPowerLosses) {
  const uint64_t base = weir::testing::TestSeed();
  size_t answered = 0;
  for (uint64_t seed = base; seed < base + 20; ++seed) {
    OnceCrash crash(seed);
    ASSERT_EQ(crash.Run(), "") << "TEST_SEED=" << seed;
    answered += crash.answered();
  }
  EXPECT_GT(answered, 500u);
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
