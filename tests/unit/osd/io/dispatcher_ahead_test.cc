// Small reads that go ahead: they start before the Scheduler is told, and nobody can tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "common/testing/manual_clock.h"
#include "osd/io/dispatcher.h"
#include "tests/unit/osd/io/held_object_store.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr uint64_t kKiB = 1 << 10;

class TestOp final : public ObjectOp {
 public:
  explicit TestOp(std::function<void()> done) : done_(std::move(done)) {}
  void Done(ObjectOpResult /*result*/) override { done_(); }

 private:
  std::function<void()> done_;
};

using Kind = qos::Decision::Kind;

// What the scheduler was told of requests, without Pulls that gave nothing.
class Recorder final : public qos::DecisionRecorder {
 public:
  struct Told {
    Kind kind;
    Duration at;
    friend bool operator==(const Told&, const Told&) = default;
    friend void PrintTo(const Told& told, std::ostream* out) {
      *out << static_cast<int>(told.kind) << " at " << told.at.count();
    }
  };
  void Note(const qos::Decision& decision) override {
    if (decision.request != nullptr) told.push_back({decision.kind, decision.now - TimePoint{0}});
  }
  std::vector<Told> told;
};

class DispatcherAheadTest : public ::testing::Test {
 protected:
  void Submit(ObjectOpKind kind, uint64_t bytes) {
    auto op = std::make_unique<TestOp>([this] { ++done_; });
    op->kind = kind;
    op->object = {InodeId(1), 0};
    if (kind == ObjectOpKind::kRead) op->length = bytes;
    if (kind == ObjectOpKind::kWrite) op->data = Buffer::AlignedZeros(bytes);
    dispatcher_.Submit(std::move(op));
  }
  void ReadIn(Duration takes) {
    Submit(ObjectOpKind::kRead, 4 * kKiB);
    ASSERT_EQ(store_.held(), 1u);
    clock_.Advance(takes);
    store_.Release();
  }
  [[nodiscard]] Duration SinceStart() { return clock_.Now() - TimePoint{0}; }

  weir::testing::ManualClock clock_;
  testing::HeldObjectStore store_;
  Recorder recorder_;
  Dispatcher dispatcher_{store_, clock_, {}, nullptr, &recorder_};
  int done_ = 0;
};

TEST_F(DispatcherAheadTest, TheSchedulerIsToldEachThingAtItsTimeWhenItIsAsked) {
  const Duration start = SinceStart();
  ReadIn(100us);
  clock_.Advance(10us);
  ReadIn(200us);
  EXPECT_EQ(done_, 2);
  EXPECT_THAT(recorder_.told, ElementsAre());
  const DispatcherStats stats = dispatcher_.Stats(false);
  EXPECT_THAT(recorder_.told,
              ElementsAre(Recorder::Told{Kind::kEnqueue, start}, Recorder::Told{Kind::kPull, start},
                          Recorder::Told{Kind::kCompleted, start + 100us},
                          Recorder::Told{Kind::kEnqueue, start + 110us},
                          Recorder::Told{Kind::kPull, start + 110us},
                          Recorder::Told{Kind::kCompleted, start + 310us}));
  ASSERT_EQ(stats.classes.size(), 1u);
  EXPECT_EQ(stats.classes[0].counters.served_ops, 2u);
  EXPECT_EQ(stats.classes[0].counters.served_bytes, 8 * kKiB);
  EXPECT_EQ(stats.classes[0].latency_sum_us, 300u);
  EXPECT_EQ(dispatcher_.outstanding(), 0u);
}

TEST_F(DispatcherAheadTest, WhoComesMeanwhileFindsItOnTheDevice) {
  const Duration start = SinceStart();
  Submit(ObjectOpKind::kRead, 4 * kKiB);
  clock_.Advance(10us);
  Submit(ObjectOpKind::kWrite, 64 * kKiB);
  EXPECT_EQ(store_.held(), 2u);
  EXPECT_THAT(recorder_.told,
              ElementsAre(Recorder::Told{Kind::kEnqueue, start}, Recorder::Told{Kind::kPull, start},
                          Recorder::Told{Kind::kEnqueue, start + 10us},
                          Recorder::Told{Kind::kPull, start + 10us}));
  store_.ReleaseAll();
  EXPECT_EQ(done_, 2);
  EXPECT_EQ(dispatcher_.outstanding(), 0u);
}

TEST_F(DispatcherAheadTest, AFewAtMostAreUntold) {
  for (int i = 0; i < 100; ++i) {
    ReadIn(50us);
    clock_.Advance(5us);
  }
  EXPECT_EQ(done_, 100);
  EXPECT_GE(recorder_.told.size(), 3u * (100 - 16));
  dispatcher_.WaitIdle();
  EXPECT_EQ(recorder_.told.size(), 3u * 100);
}

// Two who each wait for their answers, so that now one goes ahead and now the other comes
// meanwhile, and a third who asks for the counters. Its worth is under TSan.
TEST(DispatcherAheadThreadsTest, CountsEverythingOnceWithThreadsOnAllSides) {
  constexpr int kThreads = 2, kEach = 3000;
  testing::HeldObjectStore store;
  Dispatcher dispatcher(store, SystemClock::Get(), {}, [](TimePoint) {});
  std::atomic<bool> stop{false};
  std::thread device([&] {
    while (!stop) {
      if (store.held() > 0) {
        store.Release();
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::thread observer([&] {
    while (!stop) dispatcher.Stats(false);
  });
  std::deque<std::binary_semaphore> answers;  // which outlive whoever answers
  std::vector<std::thread> readers;
  readers.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    readers.emplace_back([&dispatcher, &answered = answers.emplace_back(0)] {
      for (int i = 0; i < kEach; ++i) {
        auto op = std::make_unique<TestOp>([&] { answered.release(); });
        op->object = {InodeId(1), 0};
        op->length = 4 * kKiB;
        dispatcher.Submit(std::move(op));
        answered.acquire();
      }
    });
  }
  for (std::thread& thread : readers) thread.join();
  dispatcher.WaitIdle();
  stop = true;
  device.join();
  observer.join();
  const DispatcherStats stats = dispatcher.Stats(false);
  ASSERT_EQ(stats.classes.size(), 1u);
  EXPECT_EQ(stats.classes[0].counters.served_ops, uint64_t{kThreads} * kEach);
}

}  // namespace
}  // namespace weir::osd
