// What starts in which order while somebody waits for small reads, and when a write leaves the
// device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/testing/manual_clock.h"
#include "common/testing/manual_loop.h"
#include "osd/io/dispatcher.h"
#include "tests/unit/osd/io/held_object_store.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr ClassId kReader{16}, kWriters{17};

// The moments that a scheduler was told.
class ToldTimes final : public qos::DecisionRecorder {
 public:
  void Note(const qos::Decision& decision) override {
    using Kind = qos::Decision::Kind;
    const bool timed = decision.kind != Kind::kSetBooked && decision.kind != Kind::kDoneOutside;
    if (timed) times.push_back(decision.now.ns);
  }
  std::vector<int64_t> times;
};

class TestOp final : public ObjectOp {
 public:
  explicit TestOp(std::function<void(const Status&)> done) : done_(std::move(done)) {}
  void Done(ObjectOpResult result) override { done_(result.status); }

 private:
  std::function<void(const Status&)> done_;
};

SchedulerConfig OneByOne() {
  SchedulerConfig config;
  config.guarantee = GuaranteeKind::kNone;
  config.surplus = SurplusKind::kFcfs;
  config.sharing = SharingKind::kSingle;
  config.dispatch = DispatchKind::kFifo;
  config.depth = 1;
  return config;
}

SchedulerConfig Unified() {
  SchedulerConfig base;
  base.token_rate = 200 * kMiB;
  return *ApplyProfile("unified", base);
}

ClassSpec Class(ClassId id) {
  ClassSpec spec;
  spec.id = id;
  spec.name = "class" + std::to_string(id.value);
  return spec;
}

class DispatcherHurryTest : public ::testing::Test {
 protected:
  void Start(const SchedulerConfig& config) {
    store_.after = [this] { loop_.Run(); };
    dispatcher_ = std::make_unique<Dispatcher>(store_, clock_, loop_, config, &told_);
    dispatcher_->Apply(config, {Class(kReader), Class(kWriters)});
  }
  void Submit(ObjectOpKind kind, uint64_t inode, uint64_t bytes, ClassId class_id) {
    auto op = std::make_unique<TestOp>([this, inode](const Status& status) {
      done_.push_back(inode);
      if (when_done_) std::exchange(when_done_, nullptr)();
      last_ = status.code();
      held_at_done_ = store_.held();
    });
    op->kind = kind;
    op->object = {InodeId(inode), 0};
    op->class_id = class_id;
    op->waited = waited_;
    if (kind == ObjectOpKind::kRead) op->length = bytes;
    if (kind == ObjectOpKind::kWrite) op->data = Buffer::AlignedZeros(bytes);
    dispatcher_->Submit(std::move(op));
    if (runs_loop_) loop_.Run();
  }
  void Read(uint64_t inode) { Submit(ObjectOpKind::kRead, inode, 4 * kKiB, kReader); }
  void Write(uint64_t inode, uint64_t bytes) {
    Submit(ObjectOpKind::kWrite, inode, bytes, kWriters);
  }
  void TearDown() override {
    dispatcher_->BeginDrain();
    loop_.Run();
    store_.ReleaseAll();
    EXPECT_EQ(dispatcher_->outstanding(), 0u);
  }

  // Processors are waited for 10.5 % of the time, of which the operator allows 10.
  void StartPressed() {
    const SchedulerConfig config = Unified();
    store_.after = [this] { loop_.Run(); };
    dispatcher_ = std::make_unique<Dispatcher>(store_, clock_, loop_, config);
    dispatcher_->WatchProcessors([this] { return pressed_; });
    ClassSpec reader = Class(kReader);
    reader.service = {.bound = 5ms, .probability = 0.99, .max_pending = 0};
    dispatcher_->Apply(config, {reader, Class(kWriters)});
  }
  // Of the writers, beside somebody who waits so long for each of his reads.
  uint64_t LeastPace(Duration time, Duration waited, bool writes = true) {
    waited_ = waited;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < time / 1ms; ++i) {
      while (writes && dispatcher_->outstanding() < 4) Write(1, 64 * kKiB);
      Read(2);
      store_.ReleaseAll();
      clock_.Advance(1ms);
      pressed_ += 105us;
      dispatcher_->Poll();
      const uint64_t pace = dispatcher_->Stats(false).pace;
      if (pace > 0) least = std::min(least, pace);
    }
    return least;
  }
  qos::BoundSetpoint::View BoundOfReader() {
    for (const DispatcherClassStats& one : dispatcher_->Stats(false).classes) {
      if (one.counters.id == kReader) return one.bound;
    }
    return {};
  }

  weir::testing::ManualClock clock_;
  weir::testing::ManualLoop loop_{clock_};
  testing::HeldObjectStore store_;
  bool runs_loop_ = true;  // after each submission
  Duration waited_{0};     // what the next request says
  Duration pressed_{0};    // how long somebody waited for a processor
  ToldTimes told_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::function<void()> when_done_;  // within the next Done
  std::vector<uint64_t> done_;
  size_t held_at_done_ = 0;
  ErrorCode last_ = ErrorCode::kOk;
};

TEST_F(DispatcherHurryTest, ProcessorsAreLookedAtWhileABoundIsInAHurryAndAsLongAsTheyTell) {
  const SchedulerConfig config = Unified();
  store_.after = [this] { loop_.Run(); };
  dispatcher_ = std::make_unique<Dispatcher>(store_, clock_, loop_, config);
  int looks = 0;
  std::optional<Duration> waited = Duration(0);
  dispatcher_->WatchProcessors([&] {
    ++looks;
    return waited;
  });
  ClassSpec reader = Class(kReader);
  reader.service.bound = 5ms;
  dispatcher_->Apply(config, {reader, Class(kWriters)});
  Write(1, kMiB);
  dispatcher_->Poll();
  EXPECT_EQ(looks, 0);
  Read(2);
  EXPECT_EQ(dispatcher_->NextWake(), clock_.Now());
  dispatcher_->Poll();
  EXPECT_EQ(looks, 1);
  dispatcher_->Poll();
  EXPECT_EQ(looks, 1) << "it is not time";
  clock_.Advance(100ms);
  waited = std::nullopt;
  dispatcher_->Poll();
  EXPECT_EQ(looks, 2);
  clock_.Advance(100ms);
  dispatcher_->Poll();
  EXPECT_EQ(looks, 2) << "they do not tell any more";
  EXPECT_GT(dispatcher_->NextWake(), clock_.Now());
}

TEST_F(DispatcherHurryTest, ABoundWhoseUsersWaitLittleLeavesBulkSomePressure) {
  StartPressed();
  EXPECT_GT(LeastPace(6s, 100us), 60 * kMiB) << "soon 11 % are allowed";
  EXPECT_EQ(BoundOfReader().quantile, 100us);
  EXPECT_EQ(BoundOfReader().target, 156250ns);
}

TEST_F(DispatcherHurryTest, ABoundWhoseUsersWaitLongLeavesNoMoreThanTheOperatorChose) {
  StartPressed();
  EXPECT_LT(LeastPace(6s, 4ms), 25 * kMiB);
  EXPECT_EQ(BoundOfReader().quantile, 4ms);
}

// What he waits while nobody is held back for him says nothing of how much to hold back.
TEST_F(DispatcherHurryTest, WhoWaitsLittleAloneHasNotFoundThatOthersMayHaveMore) {
  StartPressed();
  const uint64_t before = LeastPace(2s, 4ms);
  LeastPace(5s, 100us, false);
  EXPECT_LT(LeastPace(1s, 4ms), before);
  EXPECT_LT(dispatcher_->Stats(false).pace, before);
}

// No rate holds anybody back here: what has landed may wait in a cache of the device.
TEST_F(DispatcherHurryTest, AWriteThatLandedKeepsItsSlotWhereTheDeviceIsTheLimit) {
  Start(OneByOne());
  for (const uint64_t inode : {1, 2}) Write(inode, 64 * kKiB);
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0"));
  store_.Land();
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0"));
  store_.Release();
  EXPECT_THAT(store_.started(), ElementsAre("write 2.0 at 0"));
  EXPECT_THAT(done_, ElementsAre(1));
}

TEST_F(DispatcherHurryTest, AWriteThatLandedLeavesItsSlotWhereARateIsTheLimit) {
  SchedulerConfig config = OneByOne();
  config.guarantee = GuaranteeKind::kHtb;
  config.gate = GateKind::kStrict;
  config.token_rate = kMiB;
  config.best_effort_min = 0;
  config.dispatch = DispatchKind::kCvc;
  Start(config);
  for (const uint64_t inode : {1, 2}) Write(inode, 64 * kKiB);  // tokens for one
  store_.Land();
  clock_.Advance(100ms);
  dispatcher_->Poll();
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0", "write 2.0 at 0"));
  EXPECT_THAT(done_, IsEmpty());
}

TEST_F(DispatcherHurryTest, ASmallWriteKeepsItsSlotUntilItIsDurable) {
  Start(OneByOne());
  Write(1, 4 * kKiB);
  EXPECT_FALSE(store_.Lands());
}

// Goal: a decision log can be replayed. Who is answered may ask again at once, which the scheduler
// hears of before it hears of the end of what was answered.
TEST_F(DispatcherHurryTest, TheSchedulersTimeDoesNotGoBackWhenAnAnswerBringsTheNextRequest) {
  Start(Unified());
  Read(1);
  when_done_ = [this] {
    clock_.Advance(1ms);
    Submit(ObjectOpKind::kRead, 2, 4 * kKiB, kReader);
  };
  store_.Release();
  EXPECT_TRUE(std::is_sorted(told_.times.begin(), told_.times.end()));
}

TEST_F(DispatcherHurryTest, WhoWaitsForASmallReadHearsBeforeTheNextStarts) {
  Start(OneByOne());
  Read(1);
  Write(2, 64 * kKiB);
  store_.Release();
  EXPECT_THAT(done_, ElementsAre(1));
  EXPECT_EQ(held_at_done_, 0u);
  EXPECT_THAT(store_.started(), ElementsAre("write 2.0 at 0"));
}

// Those that the loop hears of meanwhile are not behind all that was pulled.
TEST_F(DispatcherHurryTest, OfLargeWritesATurnStartsAFewAndHearsOfSmallReadsInBetween) {
  SchedulerConfig config = OneByOne();
  config.depth = 8;
  Start(config);
  runs_loop_ = false;
  for (uint64_t inode = 1; inode <= 3; ++inode) Write(inode, kMiB);
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0"));
  Write(4, 4 * kKiB);  // in line behind them
  Read(5);             // not in line
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0", "read 5.0 at 0"));
  loop_.Run();
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0", "read 5.0 at 0", "write 2.0 at 0",
                                            "write 3.0 at 0", "write 4.0 at 0"));
}

TEST_F(DispatcherHurryTest, TwoWritesOf64KiBStartInATurn) {
  SchedulerConfig config = OneByOne();
  config.depth = 8;
  Start(config);
  runs_loop_ = false;
  for (uint64_t inode = 1; inode <= 3; ++inode) Write(inode, 64 * kKiB);
  EXPECT_THAT(store_.started(), ElementsAre("write 1.0 at 0", "write 2.0 at 0"));
  loop_.Run();
  EXPECT_EQ(store_.held(), 3u);
}

// A flush of its own for each would come between the reads.
TEST_F(DispatcherHurryTest, WritesLandAndWaitForCompanyBesideAReader) {
  Start(Unified());
  for (int i = 0; i < 10; ++i) {  // so that the device is known
    Write(1, 64 * kKiB);
    clock_.Advance(100us);
    store_.ReleaseAll();
  }
  for (uint64_t inode = 1; inode <= 4; ++inode) Write(inode, 64 * kKiB);
  Read(5);  // from now on the device is the limit: two writes at a time
  ASSERT_EQ(store_.held(), 5u);
  for (uint64_t inode = 6; inode <= 8; ++inode) Write(inode, 64 * kKiB);
  ASSERT_EQ(store_.held(), 5u);
  clock_.Advance(4ms);
  for (size_t i = 0; i < 3; ++i) store_.Land(i);
  EXPECT_EQ(store_.held(), 6u);
  EXPECT_EQ(store_.last_patience, 1ms);
}

// Where a small read takes as long as a burst of others is worth it.
TEST_F(DispatcherHurryTest, BesideReadsOfASlowDiskABurstOfWritesSharesItsFlush) {
  Start(Unified());
  for (int i = 0; i < 10; ++i) {
    Read(1);
    clock_.Advance(6ms);
    store_.ReleaseAll();
  }
  Write(2, 64 * kKiB);
  Read(1);
  for (uint64_t inode = 3; inode <= 5; ++inode) Write(inode, 64 * kKiB);
  ASSERT_THAT(store_.started(), ElementsAre("write 2.0 at 0", "read 1.0 at 0", "write 3.0 at 0"));
  EXPECT_EQ(store_.last_patience, 20ms);
  for (const size_t write : {0, 2, 3}) EXPECT_EQ(store_.Land(write), 20ms) << "more are to land";
  ASSERT_EQ(store_.held(), 5u);
  EXPECT_EQ(store_.Land(4), 0ms);
}

TEST_F(DispatcherHurryTest, BypassedOperationsStartAtOnceAndAreCountedApart) {
  Start(OneByOne());
  dispatcher_->SetBypass(true);
  for (uint64_t inode = 1; inode <= 4; ++inode) Write(inode, 64 * kKiB);
  EXPECT_EQ(store_.held(), 4u);
  EXPECT_FALSE(store_.Lands());
  EXPECT_EQ(dispatcher_->outstanding(), 4u);
  store_.ReleaseAll();
  EXPECT_THAT(done_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(dispatcher_->Stats(false).bypassed_bytes, 4 * (64 * kKiB));
}

TEST_F(DispatcherHurryTest, TheBypassIsSwitchedWhileOperationsAreUnderWay) {
  Start(OneByOne());
  Write(1, 64 * kKiB);
  Write(2, 64 * kKiB);  // waits for the first
  ASSERT_EQ(store_.held(), 1u);
  dispatcher_->SetBypass(true);
  Write(3, 64 * kKiB);
  EXPECT_EQ(store_.held(), 2u) << "the third goes past the second";
  dispatcher_->SetBypass(false);
  Write(4, 64 * kKiB);
  EXPECT_EQ(store_.held(), 2u);
  store_.ReleaseAll();
  EXPECT_THAT(done_, UnorderedElementsAre(1, 2, 3, 4));
  EXPECT_EQ(dispatcher_->outstanding(), 0u);
  const DispatcherStats stats = dispatcher_->Stats(false);
  EXPECT_EQ(stats.bypassed_bytes, 64 * kKiB);
  uint64_t metered = 0;
  for (const auto& row : stats.classes) metered += row.counters.served_bytes;
  EXPECT_EQ(metered, 3 * (64 * kKiB));
}

}  // namespace
}  // namespace weir::osd
