// The Dispatcher with a store that completes when the test says, under a manual clock; and once
// with real threads, for the sanitizers.
#include "osd/io/dispatcher.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/reactor/reactor.h"
#include "common/testing/manual_clock.h"
#include "common/testing/manual_loop.h"
#include "tests/unit/osd/io/held_object_store.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;
constexpr ClassId kGold{16};
constexpr ClassId kWeb{17};

class TestOp final : public ObjectOp {
 public:
  explicit TestOp(std::function<void(ObjectOpResult)> done) : done_(std::move(done)) {}
  void Done(ObjectOpResult result) override { done_(std::move(result)); }

 private:
  std::function<void(ObjectOpResult)> done_;
};

// I/O that a background thread does itself.
class BackgroundOp final : public ObjectOp {
 public:
  explicit BackgroundOp(int& went) : went_(went) {
    kind = ObjectOpKind::kBackgroundWrite;
    length = 4096;
  }
  void MayGo() override { ++went_; }
  void Done(ObjectOpResult) override {}

 private:
  int& went_;
};

// Plain order: no rates, first come first served, so that depth alone decides.
SchedulerConfig Plain(uint32_t depth) {
  SchedulerConfig config;
  config.guarantee = GuaranteeKind::kNone;
  config.surplus = SurplusKind::kFcfs;
  config.sharing = SharingKind::kSingle;
  config.dispatch = DispatchKind::kFifo;
  config.depth = depth;
  return config;
}

SchedulerConfig Strict(uint64_t rate) {
  SchedulerConfig config = Plain(32);
  config.guarantee = GuaranteeKind::kHtb;
  config.gate = GateKind::kStrict;
  config.token_rate = rate;
  config.best_effort_min = 0;
  return config;
}

ClassSpec Class(ClassId id, uint64_t reserved) {
  ClassSpec spec;
  spec.id = id;
  spec.name = "class" + std::to_string(id.value);
  if (reserved > 0) spec.reservation = Reservation{reserved, ReservationScope::kOsd, {}};
  return spec;
}

class DispatcherTest : public ::testing::Test {
 protected:
  void Start(const SchedulerConfig& config) {
    store_.after = [this] { loop_.Run(); };
    dispatcher_ = std::make_unique<Dispatcher>(store_, clock_, loop_, config);
  }
  void Write(uint64_t inode, uint64_t offset, uint64_t bytes, ClassId class_id = kBestEffort) {
    SubmitWrite(inode, offset, bytes, class_id);
    loop_.Run();
  }
  void SubmitWrite(uint64_t inode, uint64_t offset, uint64_t bytes, ClassId class_id = kBestEffort,
                   int64_t elsewhere = 0) {
    auto op = std::make_unique<TestOp>([this, inode](const ObjectOpResult& result) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      done_.push_back(inode);
    });
    op->kind = ObjectOpKind::kWrite;
    op->object = {InodeId(inode), 0};
    op->offset = offset;
    op->data = Buffer::AlignedZeros(bytes);
    op->class_id = class_id;
    op->elsewhere = elsewhere;
    dispatcher_->Submit(std::move(op));
  }
  TimePoint Poll() {
    const TimePoint next = dispatcher_->Poll();
    loop_.Run();
    return next;
  }
  void Apply(const SchedulerConfig& config, const std::vector<ClassSpec>& classes) {
    dispatcher_->Apply(config, classes);
    loop_.Run();
  }
  DispatcherClassStats Of(ClassId id, bool reset = false) {
    for (const auto& one : dispatcher_->Stats(reset).classes) {
      if (one.counters.id == id) return one;
    }
    return {};
  }
  void TearDown() override {
    if (!dispatcher_) return;
    dispatcher_->BeginDrain();
    loop_.Run();
    store_.ReleaseAll();
    EXPECT_EQ(dispatcher_->outstanding(), 0u);
  }

  weir::testing::ManualClock clock_;
  weir::testing::ManualLoop loop_{clock_};
  testing::HeldObjectStore store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<uint64_t> done_;
};

TEST_F(DispatcherTest, APacedWriteMayWaitForCompanyOneBehindAFullDeviceMayNot) {
  Start(Strict(10 * kMiB));
  Write(1, 0, kMiB);
  EXPECT_EQ(store_.last_patience, 0ns);  // nothing held it back
  Write(2, 0, kMiB);
  ASSERT_EQ(store_.held(), 1u);
  clock_.Advance(100ms);
  Poll();
  ASSERT_EQ(store_.held(), 2u);
  EXPECT_EQ(store_.last_patience, 5ms);

  Apply(Plain(2), {});
  Write(3, 0, kMiB);
  clock_.Advance(100ms);
  store_.Release();
  ASSERT_EQ(store_.held(), 2u);
  EXPECT_EQ(store_.last_patience, 0ns);  // it took the last slot
}

// Its thread goes on, says Ended, and the operation is no more.
TEST_F(DispatcherTest, BackgroundThatMustGoDoesNotStandInLineBehindLargeWrites) {
  Start(Plain(32));
  SubmitWrite(1, 0, kMiB);
  SubmitWrite(2, 0, kMiB);  // in the next turn
  int went = 0;
  auto* const op = new BackgroundOp(went);
  dispatcher_->Submit(std::unique_ptr<ObjectOp>(op));
  ASSERT_EQ(store_.held(), 1u);
  ASSERT_EQ(went, 0);
  EXPECT_FALSE(dispatcher_->ServeOutside(op));  // the scheduler has let it go
  EXPECT_EQ(went, 1);
  loop_.Run();
  EXPECT_EQ(went, 1);
  EXPECT_EQ(store_.held(), 2u);
  dispatcher_->Ended(op);
}

TEST_F(DispatcherTest, KeepsDepthRequestsOnTheDeviceAndStartsTheNextOnCompletion) {
  Start(Plain(2));
  for (uint64_t inode = 1; inode <= 4; ++inode) Write(inode, 0, 4096);
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0", "write 2.0 at 0"));
  store_.Release(1);
  EXPECT_THAT(done_, ElementsAre(2));
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0", "write 3.0 at 0"));
  store_.ReleaseAll();
  EXPECT_THAT(done_, ElementsAre(2, 1, 3, 4));
}

TEST_F(DispatcherTest, StartsWritesToOneObjectInTheOrderTheyCame) {
  Start(Plain(1));
  for (uint64_t i = 0; i < 5; ++i) Write(9, i * 4096, 4096);
  std::vector<std::string> order;
  while (store_.held() > 0) {
    order.push_back(store_.started().front());
    store_.Release();
  }
  EXPECT_THAT(order, ElementsAre("write 9.0 at 0", "write 9.0 at 4096", "write 9.0 at 8192",
                                 "write 9.0 at 12288", "write 9.0 at 16384"));
}

TEST_F(DispatcherTest, TheStoreWritesInPiecesWhileSomebodyIsInAHurry) {
  SchedulerConfig base;
  base.token_rate = 200 * kMiB;
  Start(*ApplyProfile("unified", base));
  Apply(*ApplyProfile("unified", base), {Class(kGold, 0), Class(kWeb, 0)});
  for (uint64_t i = 0; i < 40; ++i) {  // a device of 1 ms per MiB and 10 us each
    const uint64_t bytes = i % 2 == 0 ? kMiB : kMiB / 16;
    Write(100 + i, 0, bytes, kWeb);
    clock_.Advance(10us + std::chrono::nanoseconds(bytes * 1'000'000 / kMiB));
    store_.ReleaseAll();
  }
  Write(200, 0, kMiB, kWeb);
  EXPECT_EQ(store_.piece_bytes, UINT64_MAX);  // nobody else is there
  Write(1, 0, 4096, kGold);                   // waits for each answer, and others work
  EXPECT_EQ(store_.piece_bytes, 192 << 10);
  store_.ReleaseAll();
  clock_.Advance(1s);
  Write(201, 0, kMiB, kWeb);
  EXPECT_EQ(store_.piece_bytes, UINT64_MAX);
}

TEST_F(DispatcherTest, AReservedClassPassesTheQueueOfAnother) {
  Start(Strict(8 * kMiB));
  Apply(Strict(8 * kMiB), {Class(kGold, 4 * kMiB), Class(kWeb, 0)});
  for (uint64_t inode = 100; inode < 132; ++inode) Write(inode, 0, kMiB, kWeb);
  Write(1, 0, kMiB, kGold);
  // At 8 MiB/s the queue of web alone is worth four seconds; gold owns half the rate, so that its
  // request is paid after a quarter of a second.
  std::vector<std::string> started;
  while (started.empty() || started.back() != "write 1.0 at 0") {
    clock_.Set(dispatcher_->NextWake());
    Poll();
    started = store_.started();
    ASSERT_LT(clock_.Now(), TimePoint{} + 300ms);
  }
  EXPECT_LT(started.size(), 8u);
}

TEST_F(DispatcherTest, PollAtTheTimeItAskedForStartsWhatWaitedForTokens) {
  Start(Strict(4 * kMiB));
  for (uint64_t inode = 0; inode < 16; ++inode) Write(inode, 0, kMiB);
  size_t before = store_.held();
  ASSERT_LT(before, 16u);
  // Wherever a poll asks to be called again, it has something to do there; nothing is lost between.
  int polls = 0;
  while (store_.held() < 16 && ++polls < 1000) {
    const TimePoint wake = dispatcher_->NextWake();
    ASSERT_GT(wake, clock_.Now());
    clock_.Set(wake);
    Poll();
    before = store_.held();
  }
  EXPECT_EQ(before, 16u);
  // 16 MiB less a full bucket at 4 MiB/s.
  EXPECT_GT(ToSeconds(clock_.Now() - TimePoint{0}), 1.5);
  EXPECT_LT(ToSeconds(clock_.Now() - TimePoint{0}), 4.0);
}

TEST_F(DispatcherTest, AStoreThatCompletesInsideTheCallNeitherRecursesNorSticks) {
  store_.immediate = true;
  Start(Plain(1));
  for (uint64_t inode = 0; inode < 10000; ++inode) Write(inode, 0, 512);
  EXPECT_EQ(done_.size(), 10000u);
  EXPECT_EQ(dispatcher_->outstanding(), 0u);
}

TEST_F(DispatcherTest, AnotherConfigurationTakesHoldOfWhatIsQueued) {
  Start(Plain(1));
  for (uint64_t inode = 0; inode < 8; ++inode) Write(inode, 0, 4096);
  EXPECT_EQ(store_.held(), 1u);
  Apply(Plain(4), {});
  EXPECT_EQ(store_.held(), 4u);
  Apply(Plain(8), {});
  EXPECT_EQ(store_.held(), 8u);
}

TEST_F(DispatcherTest, TheSameConfigurationAgainDoesNotRefillBuckets) {
  const SchedulerConfig config = Strict(4 * kMiB);
  Start(config);
  Apply(config, {Class(kWeb, kMiB)});
  for (uint64_t inode = 0; inode < 32; ++inode) Write(inode, 0, kMiB, kWeb);
  const size_t before = store_.held();
  ASSERT_LT(before, 32u);
  for (int i = 0; i < 10; ++i) Apply(config, {Class(kWeb, kMiB)});
  EXPECT_EQ(store_.held(), before);
}

TEST_F(DispatcherTest, ARemovedClassIsServedAsClassZero) {
  Start(Plain(1));
  Apply(Plain(1), {Class(kBestEffort, 0), Class(kGold, 0)});
  for (uint64_t inode = 0; inode < 4; ++inode) Write(inode, 0, 4096, kGold);
  Apply(Plain(1), {Class(kBestEffort, 0)});
  store_.ReleaseAll();
  EXPECT_EQ(done_.size(), 4u);
  EXPECT_EQ(Of(kGold).counters.id, ClassId(0)) << "gone from the statistics";
  Write(9, 0, 4096, kGold);
  store_.ReleaseAll();
  EXPECT_GE(Of(kBestEffort).counters.served_ops, 1u);
}

TEST_F(DispatcherTest, StatisticsCountLatencyFromArrivalAndStartAgainAtReset) {
  Start(Plain(1));
  Apply(Plain(1), {Class(kBestEffort, 0), Class(kGold, 0)});
  clock_.Advance(10s);
  Write(1, 0, 8192, kGold);
  Write(2, 0, 8192, kGold);
  clock_.Advance(1ms);
  store_.Release();
  clock_.Advance(2ms);
  EXPECT_EQ(Of(kGold).counters.queued_ops, 0u);
  store_.Release();
  clock_.Advance(200ms);  // when it ended counts, not when somebody asks
  const DispatcherClassStats gold = Of(kGold);
  EXPECT_EQ(gold.counters.served_ops, 2u);
  EXPECT_EQ(gold.counters.served_bytes, 16384u);
  EXPECT_EQ(gold.counters.arrived_bytes, 16384u);
  EXPECT_NEAR(static_cast<double>(gold.p50_us), 1000, 63);
  EXPECT_NEAR(static_cast<double>(gold.p99_us), 3000, 188);
  const DispatcherStats all = dispatcher_->Stats(true);
  EXPECT_EQ(all.device_bytes_per_s, 16384u);
  EXPECT_NEAR(ToSeconds(all.window), 10.203, 1e-6);
  clock_.Advance(5s);
  EXPECT_EQ(Of(kGold).counters.served_ops, 0u);
  EXPECT_EQ(Of(kGold).p99_us, 0u);
  EXPECT_NEAR(ToSeconds(dispatcher_->Stats(false).window), 5, 1e-6);
  EXPECT_EQ(dispatcher_->Stats(false).device_bytes_per_s, 0u);
}

TEST_F(DispatcherTest, DeletesCostByTheObjectAndTellWhereToGoOn) {
  Start(Plain(4));
  store_.immediate = true;
  Write(1, 0, 4096);
  const auto before = Of(kBestEffort).counters.served_bytes;
  uint64_t next = 77;
  auto op =
      std::make_unique<TestOp>([&next](const ObjectOpResult& result) { next = result.next_index; });
  op->kind = ObjectOpKind::kDeleteInode;
  op->object = {InodeId(1), 0};
  op->length = 16;
  dispatcher_->Submit(std::move(op));
  EXPECT_EQ(next, 0u);
  EXPECT_EQ(Of(kBestEffort).counters.served_bytes - before, 16 * kMetadataOpBytes);
}

// Goal: where requests are counted, so are those that went to other OSDs, however large they are
// here. Prevents: three requests of others that count as nothing beside one of 4 KiB.
TEST_F(DispatcherTest, UnderCostRequestsTheDelayCountsRequests) {
  SchedulerConfig config = *ApplyProfile("dsfq-total", Plain(1));
  config.cost = CostKind::kRequests;
  config.depth = 1;
  Start(config);
  Apply(config, {Class(kGold, 0), Class(kWeb, 0)});
  for (uint64_t i = 0; i < 40; ++i) {
    SubmitWrite(i, 0, 4096, kGold, 3);
    SubmitWrite(100 + i, 0, 4096, kWeb);
  }
  loop_.Run();
  while (done_.size() < 40) store_.Release();
  const auto gold = std::count_if(done_.begin(), done_.end(), [](uint64_t i) { return i < 100; });
  EXPECT_NEAR(static_cast<double>(gold), 8, 2) << "one here for three elsewhere";
}

TEST_F(DispatcherTest, DrainingLiftsLimitsAndRates) {
  Start(Strict(kMiB));
  ClassSpec slow = Class(kWeb, 0);
  slow.limit_bytes_per_s = 1024;
  Apply(Strict(kMiB), {slow});
  for (uint64_t inode = 0; inode < 64; ++inode) Write(inode, 0, kMiB, kWeb);
  ASSERT_LT(store_.held(), 64u);
  dispatcher_->BeginDrain();
  loop_.Run();
  store_.ReleaseAll();
  EXPECT_EQ(done_.size(), 64u);
}

TEST_F(DispatcherTest, ErrorsOfTheStoreReachTheCaller) {
  Start(Plain(1));
  store_.fail = {ErrorCode::kCorrupt, "block 3"};
  Status seen;
  auto op = std::make_unique<TestOp>([&](const ObjectOpResult& result) { seen = result.status; });
  op->length = 4096;
  dispatcher_->Submit(std::move(op));
  store_.ReleaseAll();
  EXPECT_EQ(seen.code(), ErrorCode::kCorrupt);
}

// A completion that found nobody waiting, and a request that came to wait while it was answered.
TEST_F(DispatcherTest, WhoAsksAgainInTheAnswerIsNotLeftBehind) {
  Start(Plain(1));
  auto op = std::make_unique<TestOp>([&](const ObjectOpResult&) { Write(3, 0, 4096); });
  op->length = 4096;
  dispatcher_->Submit(std::move(op));
  store_.Release();
  EXPECT_THAT(store_.started(), ElementsAre("write 3.0 at 0"));
}

// Goal: the accounts of a small read that nobody waits behind delay no answer. Method: it is
// answered where a device's completions are, and what its Done leaves for the end of the turn (the
// sending) finds it not accounted for yet.
TEST(DispatcherThreadsTest, AnAnswerLeavesBeforeItIsAccountedFor) {
  struct Completions final : Watcher {
    std::function<void()> on_readable;
    void OnReadable() override {
      uint64_t count = 0;
      if (read(fd, &count, sizeof(count)) > 0) on_readable();
    }
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  } completions;
  testing::HeldObjectStore store;
  auto reactor = *Reactor::Create({});
  Dispatcher dispatcher(store, SystemClock::Get(), *reactor, Plain(32));
  std::promise<uint64_t> outstanding;
  completions.on_readable = [&] { store.Release(); };
  reactor->Start();
  reactor->Post([&] {
    reactor->Watch(completions.fd, &completions);
    auto op = std::make_unique<TestOp>([&](const ObjectOpResult&) {
      reactor->AtTurnEnd([&] { outstanding.set_value(dispatcher.outstanding()); });
    });
    op->kind = ObjectOpKind::kRead;
    op->object = {InodeId(1), 0};
    op->length = 4096;
    dispatcher.Submit(std::move(op));
    const uint64_t one = 1;
    EXPECT_EQ(write(completions.fd, &one, sizeof(one)), 8);
  });
  EXPECT_EQ(outstanding.get_future().get(), 1U);
  std::promise<void> idle;
  reactor->Post([&] {
    reactor->Unwatch(&completions);
    dispatcher.WhenIdle([&] { idle.set_value(); });
  });
  idle.get_future().wait();
  reactor->Stop();
  close(completions.fd);
}

// Requests from several threads by way of the loop, completions handed to it by another: everything
// is served exactly once. Its worth is under TSan.
TEST(DispatcherThreadsTest, ServesEverythingOnceWithThreadsOnAllSides) {
  testing::HeldObjectStore store;
  auto reactor = *Reactor::Create({});
  reactor->Start();
  auto dispatcher =
      std::make_unique<Dispatcher>(store, SystemClock::Get(), *reactor, Strict(2000 * kMiB));
  constexpr int kThreads = 3;
  constexpr int kEach = 2000;
  std::atomic<int> done{0};
  std::atomic<bool> stop{false};
  std::thread device([&] {
    while (!stop) {
      if (store.held() > 0) {
        RunInLoopAndWait(*reactor, [&] { store.ReleaseAll(); });
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::vector<std::thread> submitters;
  for (int t = 0; t < kThreads; ++t) {
    submitters.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        auto op = std::make_shared<std::unique_ptr<ObjectOp>>(
            std::make_unique<TestOp>([&](const ObjectOpResult&) { ++done; }));
        (*op)->kind = i % 3 == 0 ? ObjectOpKind::kRead : ObjectOpKind::kWrite;
        (*op)->object = {InodeId(static_cast<uint64_t>(t)), 0};
        (*op)->length = 4096;
        if (i % 3 != 0) (*op)->data = Buffer::AlignedZeros(i % 3 == 1 ? 4096 : 64 << 10);
        reactor->Post([&, op] { dispatcher->Submit(std::move(*op)); });
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  std::promise<void> idle;
  reactor->Post([&] { dispatcher->WhenIdle([&] { idle.set_value(); }); });
  idle.get_future().wait();
  stop = true;
  device.join();
  EXPECT_EQ(done, kThreads * kEach);
  RunInLoopAndWait(*reactor, [&] { dispatcher.reset(); });
}

}  // namespace
}  // namespace weir::osd
