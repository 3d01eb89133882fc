// The scheduler's own manners: counters, cancelling, depth, the window.
#include "osd/qos/scheduler.h"

#include <gmock/gmock.h>

#include "tests/unit/osd/qos/scheduler_fixture.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::kKiB;
using testing::kMiB;
using testing::Spec;

constexpr ClassId kF{16}, kG{17};

class SchedulerTest : public testing::SchedulerFixture {
 protected:
  static SchedulerConfig Config(std::string_view profile, uint32_t depth) {
    SchedulerConfig base;
    base.depth = depth;
    return *ApplyProfile(profile, base);
  }
};

TEST_F(SchedulerTest, TheDeviceHoldsAtMostItsDepth) {
  Scheduler scheduler(Config("sfq", 3), TimePoint{0});
  for (int i = 0; i < 10; ++i) Add(&scheduler, kBestEffort);
  const std::vector<Request*> first = PullAll(&scheduler);
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(scheduler.in_flight(), 3u);
  EXPECT_EQ(scheduler.queued(), 7u);
  scheduler.Completed(first[1], TimePoint{0});
  EXPECT_EQ(PullAll(&scheduler).size(), 1u);
}

TEST_F(SchedulerTest, DepthAutoAlsoBoundsTheBytesOnTheDevice) {
  Scheduler scheduler(Config("sfq", 0), TimePoint{0});
  for (int i = 0; i < 50; ++i) Add(&scheduler, kBestEffort, kMiB);
  EXPECT_EQ(PullAll(&scheduler).size(), 8u);
  Scheduler small(Config("sfq", 0), TimePoint{0});
  for (int i = 0; i < 50; ++i) Add(&small, kBestEffort);
  EXPECT_EQ(PullAll(&small).size(), SchedulerConfig::kAutoDepth);
  Scheduler huge(Config("sfq", 0), TimePoint{0});
  for (int i = 0; i < 2; ++i) Add(&huge, kBestEffort, 100 * kMiB);
  EXPECT_EQ(PullAll(&huge).size(), 1u);
}

TEST_F(SchedulerTest, TheWindowSortsByAddress) {
  Scheduler scheduler(Config("noqos", 2), TimePoint{0});
  for (uint64_t lba : {70, 20, 50, 10}) Add(&scheduler, kBestEffort, 1, {.lba = lba});
  std::vector<uint64_t> order;
  for (int i = 0; i < 4; ++i) {
    Request* request = scheduler.Pull(TimePoint{0}).request;
    order.push_back(request->lba);
    scheduler.Completed(request, TimePoint{0});
  }
  EXPECT_THAT(order, ::testing::ElementsAre(10, 20, 50, 70));
}

TEST_F(SchedulerTest, CountersTellQueuedAndServed) {
  Scheduler scheduler(Config("sfq", 1), TimePoint{0});
  scheduler.SetClass(Spec(kF), TimePoint{0});
  for (int i = 0; i < 3; ++i) Add(&scheduler, kF);
  Request* first = PullAll(&scheduler)[0];
  scheduler.Completed(first, TimePoint{0});
  const std::vector<ClassCounters> counters = scheduler.Counters(TimePoint{0});
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].id, kBestEffort);
  EXPECT_EQ(counters[1].id, kF);
  EXPECT_EQ(counters[1].arrived_bytes, 12 * kKiB);
  EXPECT_EQ(counters[1].served_ops, 1u);
  EXPECT_EQ(counters[1].served_bytes, 4 * kKiB);
  EXPECT_EQ(counters[1].surplus_bytes, 4 * kKiB);
  EXPECT_EQ(counters[1].guaranteed_bytes, 0u);
  EXPECT_EQ(counters[1].queued_ops, 2u);
  EXPECT_EQ(counters[1].queued_bytes, 8 * kKiB);
}

TEST_F(SchedulerTest, UnknownClassesAreServedAsBestEffort) {
  Scheduler scheduler(Config("unified", 1), TimePoint{0});
  Request* request = Add(&scheduler, ClassId(4711));
  EXPECT_EQ(request->queue, kBestEffort);
  EXPECT_EQ(PullAll(&scheduler).size(), 1u);
}

TEST_F(SchedulerTest, CancelTakesOutWhatIsNotOnTheDevice) {
  Scheduler scheduler(Config("noqos", 1), TimePoint{0});
  Request* on_device = Add(&scheduler, kBestEffort, 1, {.lba = 1});
  Request* in_window = Add(&scheduler, kBestEffort, 1, {.lba = 2});
  std::vector<Request*> queued;
  for (uint64_t i = 0; i < 3; ++i)
    queued.push_back(Add(&scheduler, kBestEffort, 1, {.lba = 3 + i}));
  ASSERT_THAT(PullAll(&scheduler), ::testing::ElementsAre(on_device));
  EXPECT_FALSE(scheduler.Cancel(on_device, TimePoint{0}));
  EXPECT_TRUE(scheduler.Cancel(in_window, TimePoint{0}));
  EXPECT_TRUE(scheduler.Cancel(queued[1], TimePoint{0}));
  EXPECT_FALSE(scheduler.Cancel(queued[1], TimePoint{0}));
  EXPECT_EQ(scheduler.queued(), 2u);
  scheduler.Completed(on_device, TimePoint{0});
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(queued[0]));
}

TEST_F(SchedulerTest, ARemovedClassLeavesItsRequestsToBestEffortInOrderOfArrival) {
  Scheduler scheduler(Config("sfq", 100), TimePoint{0});
  scheduler.SetClass(Spec(kF), TimePoint{0});
  std::vector<Request*> sent;
  for (int i = 0; i < 6; ++i) sent.push_back(Add(&scheduler, i % 2 == 0 ? kF : kBestEffort));
  scheduler.RemoveClass(kF, TimePoint{0});
  scheduler.RemoveClass(kBestEffort, TimePoint{0});  // stays
  EXPECT_EQ(PullAll(&scheduler), sent);
  for (Request* request : sent) scheduler.Completed(request, TimePoint{0});
  const std::vector<ClassCounters> counters = scheduler.Counters(TimePoint{0});
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].served_ops, 6u);
  EXPECT_EQ(counters[0].queued_ops, 0u);
}

TEST_F(SchedulerTest, HostileDelaysAreCutAndDoNotOverflow) {
  Scheduler scheduler(Config("dsfq-total", 1), TimePoint{0});
  ClassSpec spec = testing::Reserved(kF, kMiB, 1, ReservationScope::kCluster);
  spec.limit_bytes_per_s = kMiB;
  scheduler.SetClass(spec, TimePoint{0});
  Request request;
  request.class_id = kF;
  request.bytes = kKiB;
  for (int64_t elsewhere : {INT64_MAX, INT64_MIN, int64_t{-1}}) {
    request.elsewhere = elsewhere;
    scheduler.Enqueue(&request, TimePoint{0});
    EXPECT_GE(request.elsewhere, 0);
    EXPECT_TRUE(scheduler.Cancel(&request, TimePoint{0}));
  }
}

TEST_F(SchedulerTest, EnqueueingARequestTwiceIsABug) {
  Scheduler scheduler(Config("sfq", 1), TimePoint{0});
  Request* request = Add(&scheduler, kF);
  EXPECT_DEATH(scheduler.Enqueue(request, TimePoint{0}), "enqueued once");
}

}  // namespace
}  // namespace weir::osd::qos
