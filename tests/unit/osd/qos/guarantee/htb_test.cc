// The guarantee stage and the root gate, seen through a scheduler whose device takes all it gets.
#include <gmock/gmock.h>

#include "osd/qos/guarantee/htb.h"
#include "tests/unit/osd/qos/scheduler_fixture.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::kKiB;
using testing::kMiB;
using testing::Reserved;
using testing::Spec;

constexpr ClassId kA{16}, kB{17}, kC{18};

SchedulerConfig Odis(uint64_t rate) {
  SchedulerConfig base;
  base.token_rate = rate;
  base.best_effort_min = 0;
  base.depth = 1000;
  SchedulerConfig config = *ApplyProfile("odis", base);
  config.maximizer = false;
  config.dispatch = DispatchKind::kFifo;
  return config;
}

class HtbTest : public testing::SchedulerFixture {
 protected:
  // Spends the full buckets that everything starts with.
  void Empty(Scheduler* scheduler, ClassId id, uint64_t bytes) {
    Add(scheduler, id, bytes);
    ASSERT_EQ(PullAll(scheduler).size(), 1u);
  }

  // What a backlogged class is served in that time, in requests of 4 KiB of which the first tells
  // of `elsewhere` tokens.
  int64_t KibIn(Scheduler* scheduler, ClassId id, Duration time, int64_t elsewhere) {
    const TimePoint end = now_ + time;
    int64_t kib = 0;
    Add(scheduler, id, 4 * kKiB, elsewhere);
    while (now_ <= end) {
      while (!PullAll(scheduler).empty()) {
        kib += 4;
        Add(scheduler, id, 4 * kKiB);
      }
      now_ = *last_.wake_at;
    }
    now_ = end;
    return kib;
  }
};

TEST_F(HtbTest, OwnTokensFirstThenTheRootInOrderOfArrival) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  scheduler.SetClass(Reserved(kA, kMiB), now_);
  scheduler.SetClass(Spec(kB), now_);
  Request* borrower = Add(&scheduler, kB, 4 * kKiB);
  Request* owner = Add(&scheduler, kA, 4 * kKiB);
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(owner, borrower));
  EXPECT_TRUE(owner->guaranteed);
  EXPECT_FALSE(borrower->guaranteed);
}

// Measured admission may have promised more than there is.
TEST_F(HtbTest, WhatWasPromisedInFullGoesBeforeWhatWasMeasured) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  ClassSpec measured = Reserved(kA, 8 * kMiB);
  measured.reservation->admission = AdmissionKind::kMeasured;
  scheduler.SetClass(measured, now_);
  scheduler.SetClass(Reserved(kB, 8 * kMiB), now_);
  Request* soft = Add(&scheduler, kA, 4 * kKiB);
  Request* hard = Add(&scheduler, kB, 4 * kKiB);
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(hard, soft));
  EXPECT_TRUE(soft->guaranteed);
}

// A user's part makes no more of it.
TEST_F(HtbTest, WhatWasMeasuredIsNotPromisedInFullToUsersEither) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  ClassSpec measured = Reserved(kA, 8 * kMiB);
  measured.reservation->admission = AdmissionKind::kMeasured;
  measured.transactions = {{1, kKiB}};
  scheduler.SetClass(measured, now_);
  scheduler.SetClass(Reserved(kB, 8 * kMiB), now_);
  Request* soft = Add(&scheduler, kA, 4 * kKiB);
  Request* hard = Add(&scheduler, kB, 4 * kKiB);
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(hard, soft));
}

TEST_F(HtbTest, WakeAtIsWhenTheRootCoversTheFirstBorrower) {
  Scheduler scheduler(Odis(10 * kMiB), now_);  // root cap 1 MiB
  scheduler.SetClass(Spec(kA), now_);
  Empty(&scheduler, kA, kMiB);
  Add(&scheduler, kA, 10 * kKiB);
  EXPECT_TRUE(PullAll(&scheduler).empty());
  // 10 tokens at 10,240 a second.
  ASSERT_TRUE(last_.wake_at.has_value());
  EXPECT_EQ(*last_.wake_at, TimePoint{976'563});
  now_ = *last_.wake_at - 1ns;
  EXPECT_TRUE(PullAll(&scheduler).empty());
  now_ += 1ns;
  EXPECT_EQ(PullAll(&scheduler).size(), 1u);
}

TEST_F(HtbTest, ASmallerBorrowerDoesNotOvertakeTheFirst) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  scheduler.SetClass(Spec(kA), now_);
  scheduler.SetClass(Spec(kB), now_);
  Empty(&scheduler, kA, kMiB);
  Request* large = Add(&scheduler, kA, 512 * kKiB);
  Request* small = Add(&scheduler, kB, kKiB);
  now_ += 40ms;  // root: 409 tokens, enough for the small one
  EXPECT_TRUE(PullAll(&scheduler).empty());
  now_ += 12ms;
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(large, small));
}

TEST_F(HtbTest, UnderDsfqASmallerStartTagThatArrivesLaterGoesFirst) {
  SchedulerConfig config = Odis(10 * kMiB);
  config.surplus = SurplusKind::kDsfq;
  Scheduler scheduler(config, now_);
  scheduler.SetClass(Spec(kA), now_);
  scheduler.SetClass(Spec(kB), now_);
  Empty(&scheduler, kA, kMiB);
  Request* large = Add(&scheduler, kA, 512 * kKiB);
  now_ += 40ms;
  EXPECT_TRUE(PullAll(&scheduler).empty());
  Request* small = Add(&scheduler, kB, kKiB);
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(small));
  now_ += 20ms;
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(large));
}

TEST_F(HtbTest, OwnTokensAreNeverRefusedForWantOfRootTokens) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  scheduler.SetClass(Reserved(kA, 5 * kMiB), now_);
  scheduler.SetClass(Spec(kB), now_);
  Empty(&scheduler, kB, kMiB);  // the root is empty
  Request* owner = Add(&scheduler, kA, 256 * kKiB);
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(owner));
  // And the root is drained for it: a borrower waits for its own and the owner's 256 tokens.
  Add(&scheduler, kB, 256 * kKiB);
  EXPECT_TRUE(PullAll(&scheduler).empty());
  EXPECT_EQ(*last_.wake_at, TimePoint{0} + 50ms);
}

TEST_F(HtbTest, APromiseOfSystemWorkIsBookedBesideTheRoot) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  scheduler.SetClass(Reserved(kSystemScrub, 5 * kMiB), now_);
  scheduler.SetClass(Spec(kB), now_);
  Empty(&scheduler, kB, kMiB);
  Empty(&scheduler, kSystemScrub, 256 * kKiB);
  Add(&scheduler, kB, 256 * kKiB);
  EXPECT_TRUE(PullAll(&scheduler).empty());
  EXPECT_EQ(*last_.wake_at, TimePoint{0} + 25ms);
}

// The leaf holds 102 tokens and gets 1,024 a second; 4 go with the request that tells of 10,000
// elsewhere, of which it owes 6 caps below nothing: in two seconds 102 + 2,048 - (98 + 612).
TEST_F(HtbTest, ServiceElsewhereDrainsATotalPromiseDownToItsFloor) {
  Scheduler scheduler(Odis(1), now_);
  scheduler.SetClass(Reserved(kA, kMiB, 1, ReservationScope::kCluster), now_);
  scheduler.SetClass(Reserved(kC, kMiB, 1, ReservationScope::kOsd), now_);
  EXPECT_NEAR(KibIn(&scheduler, kA, 2s, 10'000), 1440, 4);
  EXPECT_NEAR(KibIn(&scheduler, kC, 2s, 10'000), 102 + 2048, 4);
}

TEST_F(HtbTest, WhatFlowedInSinceTheRequestBeforePaysForServiceElsewhere) {
  Scheduler scheduler(Odis(1), now_);
  scheduler.SetClass(Reserved(kA, kMiB, 1, ReservationScope::kCluster), now_);
  Empty(&scheduler, kA, 4 * kKiB);
  now_ += 10s;  // 10,240 tokens, but for the 4
  EXPECT_NEAR(KibIn(&scheduler, kA, 2s, 10'000), 102 + 2048, 4);
  // That was until its first request: nothing is left of it for what is told of later.
  EXPECT_NEAR(KibIn(&scheduler, kA, 2s, 400), 2048 - 400, 4);
}

TEST_F(HtbTest, ServiceElsewhereIsPaidWhenTheRequestGoesThatTellsOfIt) {
  Scheduler scheduler(Odis(1), now_);
  scheduler.SetClass(Reserved(kA, kMiB, 1, ReservationScope::kCluster), now_);
  Empty(&scheduler, kA, 100 * kKiB);
  Empty(&scheduler, kA, 2 * kKiB);
  Request* telling = Add(&scheduler, kA, 4 * kKiB, 1000);
  Request* after = Add(&scheduler, kA, 4 * kKiB);
  EXPECT_TRUE(PullAll(&scheduler).empty());
  EXPECT_EQ(*last_.wake_at, TimePoint{3'906'250});  // 4 tokens at 1,024 a second
  now_ = *last_.wake_at;
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(telling));
  EXPECT_GT(*last_.wake_at - now_, 100ms);
  now_ += 2s;
  EXPECT_THAT(PullAll(&scheduler), ::testing::ElementsAre(after));
}

TEST_F(HtbTest, AnExpiredPromiseIsGoneAndTheClassStays) {
  Scheduler scheduler(Odis(10 * kMiB), now_);
  ClassSpec spec = Reserved(kA, 5 * kMiB);
  spec.reservation_ends = TimePoint{0} + 10s;
  scheduler.SetClass(spec, now_);
  EXPECT_EQ(scheduler.NextTick(), TimePoint{0} + 1s);
  Add(&scheduler, kA, 4 * kKiB);
  EXPECT_TRUE(PullAll(&scheduler)[0]->guaranteed);
  now_ += 10s;
  Add(&scheduler, kA, 4 * kKiB);
  Request* after = PullAll(&scheduler)[0];
  EXPECT_FALSE(after->guaranteed);
  EXPECT_EQ(after->queue, kA);
}

// Goal: what a class has under way gives it its promise, if requests take no longer than its span.
// Method: a class at 100 requests per second with ten here, six of which only wait for their
// commit.
TEST_F(HtbTest, WhatHasLandedIsNoPartOfASpan) {
  Htb htb;
  ClassQueue queue;
  queue.promised_iops = 100;
  htb.PromiseChanged(&queue, now_);
  queue.counters.queued_ops = 2;
  queue.device_ops = 8;
  queue.landed_ops = 6;
  Request done;
  done.bytes = 4 * kKiB;
  EXPECT_EQ(htb.SpanOf(queue, done, now_ + 41ms), 40ms);
  EXPECT_EQ(htb.SpanOf(queue, done, now_ + 40ms), Duration::max());
}

// Goal: who waits for his own limit is not late.
TEST_F(HtbTest, WhatTheOwnLimitHeldBackIsNotLate) {
  Htb htb;
  ClassQueue queue;
  queue.promised = kMiB;
  htb.PromiseChanged(&queue, now_);
  queue.counters.queued_bytes = kMiB / 10;
  Request done;
  done.bytes = 4 * kKiB;
  EXPECT_LT(htb.SpanOf(queue, done, now_ + 150ms), 101ms);
  done.held_by_limit = 60ms;
  EXPECT_EQ(htb.SpanOf(queue, done, now_ + 150ms), Duration::max());
}

// Goal: a promise in requests is cut at the limit in bytes, as one in bytes is.
TEST_F(HtbTest, ALimitCutsTheRateOfASpan) {
  Htb htb;
  ClassQueue queue;
  queue.promised_iops = 1000;
  htb.PromiseChanged(&queue, now_);
  queue.counters.queued_ops = 25;
  queue.counters.queued_bytes = 100 * kKiB;
  Request done;
  done.bytes = 4 * kKiB;
  EXPECT_EQ(htb.SpanOf(queue, done, now_ + 99ms), 25ms);
  queue.ceiling = std::make_unique<TokenBucket>(1000 * kKiB, 1, now_);
  EXPECT_EQ(htb.SpanOf(queue, done, now_ + 99ms), Duration::max());
  EXPECT_EQ(htb.SpanOf(queue, done, now_ + 101ms), 100ms);
}

TEST_F(HtbTest, AStrictGateWithoutATokenRateLetsEverythingPass) {
  Scheduler scheduler(Odis(0), now_);
  for (int i = 0; i < 100; ++i) Add(&scheduler, kBestEffort, 4 * kMiB);
  EXPECT_EQ(PullAll(&scheduler).size(), 100u);
}

}  // namespace
}  // namespace weir::osd::qos
