// Goal: every moment that a request waits is booked to what held it back, and nothing else. Method:
// one class whose waits are known by construction, by hand and in virtual time.
#include "osd/qos/control/wait_meter.h"

#include "common/qos/blame.h"
#include "tests/unit/osd/qos/scheduler_fixture.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Reserved;
using testing::Spec;

constexpr ClassId kGold{16}, kHog{17};

SchedulerConfig Config(uint64_t token_rate, std::string_view profile = "unified") {
  SchedulerConfig base;
  base.token_rate = token_rate;
  base.best_effort_min = 0;
  base.depth = 4;
  return *ApplyProfile(profile, base);
}

ClassSpec Limited(ClassId id, uint64_t limit) {
  ClassSpec spec = Spec(id);
  spec.limit_bytes_per_s = limit;
  return spec;
}

// What the scheduler counted between two moments, judged.
class Observed {
 public:
  explicit Observed(Cluster* cluster) : cluster_(cluster) { before_ = Look(); }
  OsdClassTimes Of(ClassId id) {
    OsdClassTimes times = Look().at(id);
    times -= before_.at(id);
    return times;
  }
  Verdict JudgeAfter(Duration seconds, ClassId id) {
    Lately lately;
    OsdLately& osd = lately.osds.emplace_back();
    osd.seconds = ToSeconds(seconds);
    for (const auto& [other, times] : Look()) osd.classes[other] = Of(other);
    return Judge(lately, id);
  }

 private:
  std::map<ClassId, OsdClassTimes> Look() {
    std::map<ClassId, OsdClassTimes> all;
    for (const auto& counters : cluster_->osd().scheduler().Counters(cluster_->events().now())) {
      all[counters.id] = counters.times;
      all[counters.id].ops = counters.served_ops;
      all[counters.id].bytes = counters.served_bytes;
    }
    return all;
  }
  Cluster* cluster_;
  std::map<ClassId, OsdClassTimes> before_;
};

class WaitMeterTest : public testing::SchedulerFixture {
 protected:
  // One request of gold takes what its limit has saved.
  void SpendBucket(Scheduler* scheduler) {
    Add(scheduler, kGold, 256 * kKiB);
    now_ += 10s;
    ASSERT_NE(Serve(scheduler), nullptr);
  }
};

TEST_F(WaitMeterTest, ALimitIsBookedForAllThatWaitBehindIt) {
  Scheduler scheduler(Config(100 * kMiB), now_);
  scheduler.SetClass(Limited(kGold, kMiB), now_);
  SpendBucket(&scheduler);
  const OsdClassTimes before = scheduler.Counters(now_)[1].times;
  for (int i = 0; i < 2; ++i) Add(&scheduler, kGold, 256 * kKiB);
  ASSERT_EQ(Serve(&scheduler), nullptr);
  now_ += 100ms;
  OsdClassTimes times = scheduler.Counters(now_)[1].times;
  times -= before;
  EXPECT_EQ(times.limit_ns, uint64_t{200'000'000}) << "two stood there";
  EXPECT_EQ(times.limited_ns, uint64_t{100'000'000});
  EXPECT_EQ(times.active_ns, uint64_t{100'000'000});
  EXPECT_EQ(times.turn_ns + times.owed_ns + times.device_ns, 0u);
}

TEST_F(WaitMeterTest, ARequestKnowsHowLongTheLimitHeldIt) {
  Scheduler scheduler(Config(100 * kMiB), now_);
  scheduler.SetClass(Limited(kGold, kMiB), now_);
  SpendBucket(&scheduler);
  Add(&scheduler, kGold, 256 * kKiB);
  Request* request = Serve(&scheduler);
  for (; request == nullptr; request = Serve(&scheduler)) now_ += 1ms;
  EXPECT_GT(request->held_by_limit, 200ms);
  EXPECT_EQ(request->held_by_limit, request->dispatched - request->arrival);
  now_ += 10s;
  Add(&scheduler, kGold, 4 * kKiB);
  request = Serve(&scheduler);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->held_by_limit, Duration(0));
}

TEST_F(WaitMeterTest, TheDeviceIsBookedFromPullToCompletion) {
  Scheduler scheduler(Config(100 * kMiB), now_);
  scheduler.SetClass(Spec(kGold), now_);
  Add(&scheduler, kGold);
  Request* request = scheduler.Pull(now_).request;
  now_ += 7ms;
  scheduler.Completed(request, now_);
  now_ += 5ms;
  const OsdClassTimes times = scheduler.Counters(now_)[1].times;
  EXPECT_EQ(times.device_ns, uint64_t{7'000'000});
  EXPECT_EQ(times.active_ns, uint64_t{7'000'000}) << "it had nothing here afterwards";
  EXPECT_EQ(times.turn_ns, 0u);
}

TEST_F(WaitMeterTest, WhatGoesToClassZeroIsBookedThere) {
  Scheduler scheduler(Config(100 * kMiB), now_);
  scheduler.SetClass(Limited(kGold, kMiB), now_);
  SpendBucket(&scheduler);
  for (int i = 0; i < 2; ++i) Add(&scheduler, kGold, 256 * kKiB);
  now_ += 50ms;
  scheduler.RemoveClass(kGold, now_);
  const auto counters = scheduler.Counters(now_);
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].times.active_ns, 0u) << "they wait there from now on only";
  now_ += 10ms;
  EXPECT_EQ(scheduler.Counters(now_)[0].times.turn_ns, uint64_t{20'000'000});
}

TEST_F(WaitMeterTest, AllTimeIsBooked) {
  Cluster cluster(1, Config(50 * kMiB), 100 * kMiB);
  cluster.SetClass(Limited(kGold, 20 * kMiB));
  cluster.SetClass(Reserved(kHog, 10 * kMiB));
  cluster.Start({.class_id = kGold, .outstanding = 8});
  cluster.Start({.class_id = kHog, .outstanding = 16});
  cluster.RunTo(2s);
  Observed observed(&cluster);
  cluster.RunTo(6s);
  for (const auto& [id, outstanding] : {std::pair(kGold, 8.0), std::pair(kHog, 16.0)}) {
    const OsdClassTimes times = observed.Of(id);
    const auto all = times.limit_ns + times.turn_ns + times.owed_ns + times.device_ns;
    EXPECT_NEAR(static_cast<double>(all) * 1e-9, 4 * outstanding, 0.01) << id;
    EXPECT_LE(times.rate_ns, times.turn_ns);
    EXPECT_NEAR(static_cast<double>(times.active_ns) * 1e-9, 4, 1e-6);
  }
}

TEST_F(WaitMeterTest, AThrottledClassIsBlamedOnItsLimitBesideAHog) {
  Cluster cluster(1, Config(100 * kMiB), 100 * kMiB);
  cluster.SetClass(Limited(kGold, 5 * kMiB));
  cluster.SetClass(Spec(kHog));
  cluster.Start({.class_id = kGold, .outstanding = 16});
  cluster.Start({.class_id = kHog, .outstanding = 64});
  cluster.RunTo(2s);
  Observed observed(&cluster);
  cluster.RunTo(6s);
  EXPECT_EQ(observed.JudgeAfter(4s, kGold).culprit, Culprit::kLimit);
  EXPECT_GT(observed.JudgeAfter(4s, kGold).limited_part, 0.8);
  EXPECT_EQ(observed.JudgeAfter(4s, kHog).culprit, Culprit::kDisk) << "it takes nearly all";
}

TEST_F(WaitMeterTest, ANeighbourIsNamed) {
  for (const char* profile : {"unified", "noqos", "dsfq-total"}) {
    Cluster cluster(1, Config(200 * kMiB, profile), 100 * kMiB);
    cluster.SetClass(Spec(kGold));
    cluster.SetClass(Spec(kHog, 4));
    cluster.SetClass(Spec(ClassId(18)));
    cluster.Start({.class_id = kGold, .outstanding = 4});
    cluster.Start({.class_id = kHog, .outstanding = 64});
    cluster.Start({.class_id = ClassId(18), .outstanding = 1, .think = 100ms});
    cluster.RunTo(2s);
    Observed observed(&cluster);
    cluster.RunTo(6s);
    const Verdict verdict = observed.JudgeAfter(4s, kGold);
    EXPECT_EQ(verdict.culprit, Culprit::kNeighbour) << profile;
    EXPECT_EQ(verdict.neighbour, kHog) << profile;
    EXPECT_EQ(observed.JudgeAfter(4s, ClassId(18)).culprit, Culprit::kApplication) << profile;
  }
}

TEST_F(WaitMeterTest, AloneTheDiskIsToBlame) {
  for (const uint64_t token_rate : {50 * kMiB, 200 * kMiB}) {
    Cluster cluster(1, Config(token_rate, "odis"), 100 * kMiB);
    cluster.SetClass(Spec(kGold));
    cluster.Start({.class_id = kGold, .outstanding = 32});
    cluster.RunTo(2s);
    Observed observed(&cluster);
    cluster.RunTo(6s);
    const Verdict verdict = observed.JudgeAfter(4s, kGold);
    EXPECT_EQ(verdict.culprit, Culprit::kDisk) << token_rate;
    const bool token_bound = token_rate < 100 * kMiB;
    EXPECT_EQ(verdict.split.token_wait > verdict.split.class_queue, token_bound) << token_rate;
  }
}

}  // namespace
}  // namespace weir::osd::qos
