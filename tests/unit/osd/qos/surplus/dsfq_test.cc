// Start tags, worked by hand, and the fairness theorem of SFQ(D).
#include <gmock/gmock.h>

#include <array>
#include <deque>

#include "common/testing/seed.h"
#include "tests/unit/osd/qos/scheduler_fixture.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Reserved;
using testing::Spec;

constexpr ClassId kF{16}, kG{17};

SchedulerConfig Profile(std::string_view name, uint32_t depth, uint64_t rate = 0) {
  SchedulerConfig base;
  base.depth = depth;
  base.token_rate = rate;
  base.best_effort_min = 0;
  return *ApplyProfile(name, base);
}

class DsfqTest : public testing::SchedulerFixture {
 protected:
  // Both classes have weight 1/2 and a minimum of 1/12: K = 10.
  static void SetShares(Scheduler* scheduler) {
    scheduler->SetClass(Spec(kBestEffort, 1e-6), TimePoint{0});
    for (ClassId id : {kF, kG}) {
      ClassSpec spec = Spec(id, 0.5);
      spec.min_weight = 1.0 / 12;
      scheduler->SetClass(spec, TimePoint{0});
    }
  }
  // Both are served, in turns, 4 a millisecond of each. Then v is the F of both but for a request.
  void ServeBoth(Scheduler* scheduler, Duration how_long) {
    for (const TimePoint end = now_ + how_long; now_ < end; now_ += 1ms) {
      for (ClassId id : {kF, kG}) Add(scheduler, id, 4 * kKiB);
      for (int i = 0; i < 2; ++i) ASSERT_NE(Serve(scheduler), nullptr);
    }
  }
};

TEST_F(DsfqTest, TagsFollowEquationsTwoAndThree) {
  Scheduler scheduler(Profile("sfq", 1), now_);
  scheduler.SetClass(Spec(kF, 1), now_);
  scheduler.SetClass(Spec(kG, 2), now_);
  std::vector<Request*> f, g;
  for (int i = 0; i < 2; ++i) f.push_back(Add(&scheduler, kF, 4 * kKiB));
  for (int i = 0; i < 4; ++i) g.push_back(Add(&scheduler, kG, 4 * kKiB));
  std::vector<Request*> order;
  for (int i = 0; i < 6; ++i) order.push_back(Serve(&scheduler));
  EXPECT_THAT(order, ::testing::ElementsAre(f[0], g[0], g[1], f[1], g[2], g[3]));
  EXPECT_EQ(f[1]->start_tag, 4);
  EXPECT_EQ(f[1]->finish_tag, 8);
  EXPECT_EQ(g[3]->start_tag, 6);
  EXPECT_EQ(g[3]->finish_tag, 8);
  // A class that was idle returns with S >= v (I-6): v is 6 now.
  EXPECT_EQ(Add(&scheduler, kF, kKiB)->v_arrival, 6);
}

// phi = 1/2, phi_min = 1/12: K = 10. Of a delay of 100 a request of cost 4 pays 40; the rest is
// paid by the next ones, as long as time has not absorbed it.
TEST_F(DsfqTest, HybridWithHistoryPaysLaterWhatItCutOff) {
  Scheduler scheduler(Profile("dsfq-hybrid-h", 1), now_);
  SetShares(&scheduler);
  ServeBoth(&scheduler, 400ms);
  const Request* before = Add(&scheduler, kF, 4 * kKiB);
  const Request* first = Add(&scheduler, kF, 4 * kKiB, 100);
  const Request* second = Add(&scheduler, kF, 4 * kKiB);
  const Request* third = Add(&scheduler, kF, 4 * kKiB);
  const Request* fourth = Add(&scheduler, kF, 4 * kKiB);
  for (int i = 0; i < 5; ++i) Serve(&scheduler);
  EXPECT_NEAR(first->start_tag, before->finish_tag + 40 / 0.5, 1e-3);
  EXPECT_NEAR(second->start_tag, first->finish_tag + 40 / 0.5, 1e-3);  // 60 owed: 40 of it
  EXPECT_NEAR(third->start_tag, second->finish_tag + 20 / 0.5, 1e-3);  // the last 20
  EXPECT_NEAR(fourth->start_tag, third->finish_tag, 1e-3);
}

// Goal: when demand moves, what a class got where nobody needed it keeps it away for a quarter of a
// second of its share, not for as long as it took. Method: it comes with a delay of minutes; 4 a
// millisecond are its share.
TEST_F(DsfqTest, HybridWithHistoryOwesAtMostTheShareOfAQuarterSecond) {
  Scheduler scheduler(Profile("dsfq-hybrid-h", 1), now_);
  SetShares(&scheduler);
  ServeBoth(&scheduler, 2s);
  double paid = 0;
  const Request* last = Add(&scheduler, kF, 4 * kKiB);
  Serve(&scheduler);
  for (int i = 0; i < 100; ++i) {
    const Request* next = Add(&scheduler, kF, 4 * kKiB, i == 0 ? 1'000'000 : 0);
    Serve(&scheduler);
    paid += (next->start_tag - last->finish_tag) * 0.5;
    last = next;
  }
  EXPECT_NEAR(paid, 250 * 4, 25 * 4) << "to a slot of 25 ms";
}

TEST_F(DsfqTest, HybridWithHistoryOwesNothingAfterAPause) {
  Scheduler scheduler(Profile("dsfq-hybrid-h", 1), now_);
  SetShares(&scheduler);
  ServeBoth(&scheduler, 2s);
  now_ += 600ms;
  const Request* before = Add(&scheduler, kF, 4 * kKiB);
  Serve(&scheduler);
  const Request* next = Add(&scheduler, kF, 4 * kKiB, 1'000'000);
  Serve(&scheduler);
  EXPECT_LE(next->start_tag - before->finish_tag, 2 * 4 / 0.5);
}

// A debt is gone once v has overtaken it.
TEST_F(DsfqTest, HybridWithHistoryForgetsWhatTimeHasAbsorbed) {
  Scheduler scheduler(Profile("dsfq-hybrid-h", 1), now_);
  SetShares(&scheduler);
  ServeBoth(&scheduler, 400ms);
  Add(&scheduler, kF, 4 * kKiB, 1000);
  Serve(&scheduler);
  for (int i = 0; i < 300; ++i) Add(&scheduler, kG, 4 * kKiB);
  for (int i = 0; i < 300; ++i) Serve(&scheduler);
  const Request* late = Add(&scheduler, kF, 4 * kKiB);
  Serve(&scheduler);
  EXPECT_EQ(late->start_tag, late->v_arrival);
  const Request* next = Add(&scheduler, kF, 4 * kKiB);
  Serve(&scheduler);
  EXPECT_EQ(next->start_tag, late->finish_tag);
}

// A6.
TEST_F(DsfqTest, TotalCountsNoMoreThanKCostsAfterIdleTime) {
  SchedulerConfig config = Profile("dsfq-total", 1);
  config.reset_idle = 5s;
  Scheduler scheduler(config, now_);
  scheduler.SetClass(Spec(kBestEffort, 0.5), now_);
  ClassSpec spec = Spec(kF, 0.5);
  spec.min_weight = 1.0 / 12;
  scheduler.SetClass(spec, now_);
  now_ += 4900ms;
  EXPECT_EQ(Add(&scheduler, kF, 4 * kKiB, 1000)->elsewhere, 1000);  // its class is younger
  Serve(&scheduler);
  now_ += 5s;
  EXPECT_EQ(Add(&scheduler, kF, 4 * kKiB, 1000)->elsewhere, 10 * 4);
  EXPECT_EQ(Add(&scheduler, kF, 4 * kKiB, 1000)->elsewhere, 10 * 4);  // overtaken on its way
  now_ += 100ms;
  EXPECT_EQ(Add(&scheduler, kF, 4 * kKiB, 1000)->elsewhere, 1000);  // it is here now
  config.reset_idle = 0s;
  scheduler.Configure(config, now_);
  while (Serve(&scheduler) != nullptr) {
  }
  now_ += 1h;
  EXPECT_EQ(Add(&scheduler, kF, 4 * kKiB, 1000)->elsewhere, 1000);
}

// The accident: after twelve seconds on other OSDs a class came back, its second request overtook
// the first, which tells of all that, and the class paid for it as if it had been here meanwhile.
TEST_F(DsfqTest, AClassThatReturnsIsForgivenWhatAnOvertakenRequestTells) {
  SchedulerConfig config = Profile("dsfq-hybrid-h", 1);
  config.reset_idle = 5s;
  Scheduler scheduler(config, now_);
  scheduler.SetClass(Spec(kBestEffort, 1e-6), now_);
  for (ClassId id : {kF, kG}) {
    ClassSpec spec = Spec(id, 0.5);
    spec.min_weight = 1.0 / 12;
    scheduler.SetClass(spec, now_);
  }
  now_ += 12s;
  Add(&scheduler, kF, 4 * kKiB);
  now_ += 1ms;
  Add(&scheduler, kF, 4 * kKiB, 100'000);
  const Request* third = Add(&scheduler, kF, 4 * kKiB);
  const Request* fourth = Add(&scheduler, kF, 4 * kKiB);
  while (Serve(&scheduler) != nullptr) {
  }
  EXPECT_NEAR(fourth->start_tag, third->finish_tag, 1e-3);  // nothing is owed any more
}

TEST_F(DsfqTest, EqualTagsGoInOrderOfArrival) {
  Scheduler scheduler(Profile("sfq", 1), now_);
  std::vector<Request*> sent, served;
  for (uint32_t i = 0; i < 20; ++i) {
    scheduler.SetClass(Spec(ClassId(100 - i)), now_);
    sent.push_back(Add(&scheduler, ClassId(100 - i), 4 * kKiB));
  }
  for (size_t i = 0; i < sent.size(); ++i) served.push_back(Serve(&scheduler));
  EXPECT_EQ(served, sent);
}

// Months of service must not wear out the doubles: tags are moved back, and nobody notices.
TEST_F(DsfqTest, TagsAreMovedBackBeforeTheyLosePrecision) {
  Scheduler scheduler(Profile("sfq", 1), now_);
  scheduler.SetClass(Spec(kF, 1e-6), now_);
  scheduler.SetClass(Spec(kG, 2e-6), now_);
  std::map<ClassId, int> served;
  for (ClassId id : {kF, kG, kF, kG}) Add(&scheduler, id, 4 * kMiB);
  double highest = 0;
  for (int i = 0; i < 15'000; ++i) {
    Request* request = Serve(&scheduler);
    ++served[request->class_id];
    highest = std::max(highest, request->start_tag);
    scheduler.Enqueue(request, now_);
    if (i % 100 == 0) scheduler.Tick(now_ += 1s);
  }
  EXPECT_NEAR(served[kF], 5000, 3);
  EXPECT_NEAR(served[kG], 10'000, 3);
  EXPECT_GT(highest, 1e13);
  EXPECT_LT(highest, 2e13);
}

TEST_F(DsfqTest, TheDelayEntersTheStartTagByEquationFive) {
  Scheduler total(Profile("dsfq-total", 1), now_);
  total.SetClass(Spec(kF, 2), now_);
  Request* request = Add(&total, kF, 4 * kKiB, 30);
  EXPECT_EQ(request->start_tag, 15);
  EXPECT_EQ(request->finish_tag, 17);
  Scheduler single(Profile("sfq", 1), now_);
  EXPECT_EQ(Add(&single, kBestEffort, 4 * kKiB, 30)->start_tag, 0);
}

TEST_F(DsfqTest, TheHybridDelayIsCutAtKTimesTheCost) {
  Scheduler scheduler(Profile("dsfq-hybrid", 1), now_);
  ClassSpec half = Spec(kF, 1);
  half.min_weight = 1.0 / 6;  // with class 0 of weight 1: phi = 1/2, phi_min = 1/12, K = 10
  scheduler.SetClass(half, now_);
  EXPECT_DOUBLE_EQ(Add(&scheduler, kF, 4 * kKiB, 1000)->start_tag, 40);
}

TEST_F(DsfqTest, ANewWeightActsOnTheWaitingHead) {
  Scheduler scheduler(Profile("sfq", 1), now_);
  scheduler.SetClass(Spec(kF, 1), now_);
  Request* head = Add(&scheduler, kF, 8 * kKiB);
  EXPECT_EQ(head->finish_tag, 8);
  scheduler.SetClass(Spec(kF, 4), now_);
  EXPECT_EQ(head->finish_tag, 2);
}

TEST_F(DsfqTest, CostInRequestsChargesEveryRequestOne) {
  SchedulerConfig config = Profile("sfq", 1);
  config.cost = CostKind::kRequests;
  Scheduler scheduler(config, now_);
  EXPECT_EQ(Add(&scheduler, kBestEffort, kMiB)->finish_tag, 1);
}

// A class fed by its promise alone must not let v stand still: who comes later would find a credit
// as long as that time.
TEST_F(DsfqTest, PromisesAloneDoNotSaveUpCreditForTheIdle) {
  Scheduler scheduler(Profile("unified", 1, 100 * kMiB), now_);
  scheduler.SetClass(Reserved(kF, 20 * kMiB), now_);
  scheduler.SetClass(Spec(kG), now_);
  for (int i = 0; i < 1000; ++i) {
    now_ += 10ms;
    Add(&scheduler, kF, 100 * kKiB);
    ASSERT_TRUE(Serve(&scheduler)->guaranteed);
  }
  Request* f = Add(&scheduler, kF, 100 * kKiB);
  Request* g = Add(&scheduler, kG, 100 * kKiB);
  EXPECT_NEAR(f->start_tag - g->start_tag, 0, 2 * 2048);
  EXPECT_GT(g->start_tag, 90'000);
}

TEST_F(DsfqTest, AGuaranteedReleaseDoesNotDragVirtualTimePastWhoWaits) {
  SchedulerConfig config = Profile("unified", 1, 100 * kMiB);
  config.gate = GateKind::kStrict;
  Scheduler scheduler(config, now_);
  scheduler.SetClass(Reserved(kF, 50 * kMiB), now_);
  scheduler.SetClass(Spec(kG), now_);
  Add(&scheduler, kBestEffort, 20 * kMiB);  // empties the root, so that g waits
  Serve(&scheduler);
  Request* g = Add(&scheduler, kG, 4 * kMiB);
  for (int i = 0; i < 10; ++i) {
    now_ += 4ms;
    Add(&scheduler, kF, 100 * kKiB);
    ASSERT_TRUE(Serve(&scheduler)->guaranteed);
  }
  EXPECT_GE(Add(&scheduler, kF, 100 * kKiB)->start_tag, 1000);
  EXPECT_LE(Add(&scheduler, kBestEffort, kKiB)->v_arrival, g->start_tag);
}

// What a promise gives beyond the share is not a debt: when it is released the class has its share
// at once.
TEST(DsfqRunTest, AReleasedPromiseLeavesNoDebt) {
  Cluster cluster(1, Profile("unified", 2, 100 * kMiB), 100 * kMiB);
  cluster.SetClass(Reserved(kF, 90 * kMiB));
  cluster.SetClass(Spec(kG));
  Load* f = cluster.Start({.class_id = kF, .outstanding = 32});
  cluster.Start({.class_id = kG, .outstanding = 32});
  cluster.RunTo(20s);
  EXPECT_NEAR(f->MiBps(2s, 20s), 90, 1);
  cluster.SetClass(Spec(kF));
  cluster.RunTo(30s);
  EXPECT_NEAR(f->MiBps(21s, 24s), 50, 2);
}

// The same where the promise is kept over two OSDs, each of which hears of the other.
TEST(DsfqRunTest, AReleasedPromiseOverTwoOsdsLeavesNoDebt) {
  Cluster cluster(2, Profile("unified", 2, 100 * kMiB), 100 * kMiB);
  cluster.SetClass(Reserved(kF, 180 * kMiB, 1, ReservationScope::kCluster));
  cluster.SetClass(Spec(kG));
  std::array<Load*, 2> f{};
  for (size_t osd = 0; osd < 2; ++osd) {
    f[osd] = cluster.Start({.class_id = kF, .outstanding = 32, .osd = osd});
    cluster.Start({.class_id = kG, .outstanding = 32, .osd = osd});
  }
  cluster.RunTo(20s);
  EXPECT_NEAR(f[0]->MiBps(2s, 20s) + f[1]->MiBps(2s, 20s), 180, 2);
  cluster.SetClass(Spec(kF));
  cluster.RunTo(30s);
  EXPECT_NEAR(f[0]->MiBps(21s, 24s) + f[1]->MiBps(21s, 24s), 100, 4);
}

// Oracle O1: X(t) = W_f / phi_f - W_g / phi_g stays within Theorem 1's band while both wait.
TEST(DsfqRunTest, TheoremOneHoldsForRandomSizesAndWeights) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    const auto depth = static_cast<uint32_t>(prng.Uniform(1, 16));
    Scheduler scheduler(Profile("sfq", depth), TimePoint{0});
    const double w_f = 0.5 + prng.Real() * 4, w_g = 0.5 + prng.Real() * 4;
    scheduler.SetClass(Spec(kF, w_f), TimePoint{0});
    scheduler.SetClass(Spec(kG, w_g), TimePoint{0});
    const int64_t max_f = 4 << prng.Uniform(0, 6), max_g = 4 << prng.Uniform(0, 6);
    std::vector<Request> requests(2 * (depth + 4));
    const auto enqueue = [&](Request* request) {
      const int64_t largest = request->class_id == kF ? max_f : max_g;
      request->bytes = prng.Uniform(1, largest) * kKiB;
      scheduler.Enqueue(request, TimePoint{0});
    };
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].class_id = i % 2 == 0 ? kF : kG;
      enqueue(&requests[i]);
    }
    double x = 0, lowest = 0, highest = 0;
    std::vector<Request*> device;
    for (int i = 0; i < 2000; ++i) {
      while (Request* request = scheduler.Pull(TimePoint{0}).request) device.push_back(request);
      ASSERT_LE(device.size(), depth);                                 // I-3
      ASSERT_TRUE(device.size() == depth || scheduler.queued() == 0);  // I-4
      const size_t pick = prng.Uniform(0, device.size() - 1);
      Request* request = device[pick];
      device.erase(device.begin() + static_cast<ptrdiff_t>(pick));
      scheduler.Completed(request, TimePoint{0});
      const auto cost = static_cast<double>(request->cost);
      x += request->class_id == kF ? cost / w_f : -cost / w_g;
      lowest = std::min(lowest, x);
      highest = std::max(highest, x);
      enqueue(request);
    }
    const double bound =
        (depth + 1) * (static_cast<double>(max_f) / w_f + static_cast<double>(max_g) / w_g);
    EXPECT_LE(highest - lowest, bound) << "round " << round;
  }
}

// I-1, and FIFO within a class.
TEST(DsfqRunTest, DispatchedStartTagsNeverFallAndAClassKeepsItsOrder) {
  Prng prng(weir::testing::TestSeed());
  Scheduler scheduler(Profile("dsfq-total", 4), TimePoint{0});
  std::deque<Request> requests;
  std::map<ClassId, uint64_t> last_of;
  double last_tag = 0;
  for (uint32_t id = 16; id < 24; ++id) scheduler.SetClass(Spec(ClassId(id), id - 15), {});
  for (int i = 0; i < 5000; ++i) {
    requests.emplace_back();
    requests.back().class_id = ClassId(static_cast<uint32_t>(prng.Uniform(16, 23)));
    requests.back().bytes = prng.Uniform(1, 64) * kKiB;
    requests.back().elsewhere = static_cast<int64_t>(prng.Uniform(0, 50));
    scheduler.Enqueue(&requests.back(), {});
    if (!prng.Chance(0.9)) continue;
    Request* request = scheduler.Pull({}).request;
    if (request == nullptr) continue;
    ASSERT_GE(request->start_tag, last_tag);
    ASSERT_GT(request->sequence, last_of[request->class_id]);
    last_tag = request->start_tag;
    last_of[request->class_id] = request->sequence;
    scheduler.Completed(request, {});
  }
}

}  // namespace
}  // namespace weir::osd::qos
