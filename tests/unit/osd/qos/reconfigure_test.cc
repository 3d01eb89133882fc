// Everything may change while requests wait, and nothing is lost, doubled or starved.
#include <gmock/gmock.h>

#include <deque>
#include <set>

#include "common/testing/seed.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Spec;

SchedulerConfig RandomConfig(Prng* prng) {
  static constexpr const char* kProfiles[] = {
      "noqos", "odis", "sfq", "dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h", "vd", "baa", "unified"};
  SchedulerConfig base;
  base.token_rate = prng->Uniform(0, 3) * 20 * kMiB;
  base.depth = static_cast<uint32_t>(prng->Uniform(0, 6));
  SchedulerConfig config =
      *ApplyProfile(kProfiles[prng->Uniform(0, std::size(kProfiles) - 1)], base);
  if (prng->Chance(0.3)) config.gate = GateKind::kStrict;
  if (prng->Chance(0.3)) config.cost = CostKind::kRequests;
  if (prng->Chance(0.3)) config.dispatch = DispatchKind::kFifo;
  if (prng->Chance(0.2)) config.guarantee = GuaranteeKind::kHtb;
  if (prng->Chance(0.2)) config.quantum = 5ms;
  return config;
}

ClassSpec RandomSpec(Prng* prng) {
  ClassSpec spec = Spec(ClassId(static_cast<uint32_t>(prng->Uniform(0, 12))), prng->Real() * 3);
  if (prng->Chance(0.4)) spec.limit_bytes_per_s = prng->Uniform(1, 20) * kMiB;
  if (prng->Chance(0.5)) {
    const auto scope = prng->Chance(0.5) ? ReservationScope::kCluster : ReservationScope::kOsd;
    spec.reservation = Reservation{prng->Uniform(1, 20) * kMiB, scope, std::nullopt};
  }
  spec.disk.type = static_cast<ClassType>(prng->Uniform(0, 3));
  spec.disk.peak = .3 * prng->Real();
  spec.disk.latency = Duration(static_cast<int64_t>(prng->Uniform(1, 50'000'000)));
  spec.disk.throughput_bytes_per_s = prng->Uniform(1, 20) * kMiB;
  return spec;
}

class ReconfigureRun {
 public:
  explicit ReconfigureRun(uint64_t seed) : prng_(seed), scheduler_(RandomConfig(&prng_), now_) {}

  void Step() {
    now_ += Duration(static_cast<int64_t>(prng_.Uniform(0, 5'000'000)));
    switch (prng_.Uniform(0, 19)) {
      case 0:
        return scheduler_.Configure(RandomConfig(&prng_), now_);
      case 1:
        return ChangeClass();
      case 2:
        return scheduler_.RemoveClass(ClassId(static_cast<uint32_t>(prng_.Uniform(0, 12))), now_);
      case 3:
        return CancelOne();
      case 4:
        return scheduler_.Tick(now_);
      default:
        return prng_.Chance(0.5) ? EnqueueOne() : PullSome();
    }
  }

  // After everything has stopped changing, every request comes out.
  void Drain() {
    for (int i = 0; i < 100'000 && scheduler_.queued() + scheduler_.in_flight() > 0; ++i) {
      CompleteAll();
      const PullResult result = scheduler_.Pull(now_);
      if (result.request != nullptr) {
        device_.insert(result.request);
      } else if (result.wake_at) {
        ASSERT_GT(*result.wake_at, now_);
        now_ = *result.wake_at;
      } else {
        ASSERT_FALSE(device_.empty() && scheduler_.queued() > 0) << "nobody will ever wake";
      }
    }
    CompleteAll();
    EXPECT_EQ(scheduler_.queued(), 0u);
    EXPECT_EQ(scheduler_.in_flight(), 0u);
    EXPECT_EQ(done_ + cancelled_, requests_.size());
    for (const ClassCounters& counters : scheduler_.Counters(now_)) {
      EXPECT_EQ(counters.queued_ops, 0u);
      EXPECT_EQ(counters.queued_bytes, 0u);
    }
  }

 private:
  void ChangeClass() {
    ClassSpec spec = RandomSpec(&prng_);
    if (prng_.Chance(0.3)) spec.reservation_ends = now_ + 50ms;
    scheduler_.SetClass(spec, now_);
  }
  void EnqueueOne() {
    requests_.emplace_back();
    Request* request = &requests_.back();
    request->class_id = ClassId(static_cast<uint32_t>(prng_.Uniform(0, 14)));
    request->bytes = prng_.Uniform(0, 256) * kKiB;
    request->lba = prng_.Next() >> 20;
    request->elsewhere = prng_.Chance(0.5) ? static_cast<int64_t>(prng_.Uniform(0, 500)) : 0;
    scheduler_.Enqueue(request, now_);
  }
  void PullSome() {
    while (Request* request = scheduler_.Pull(now_).request) {
      ASSERT_TRUE(device_.insert(request).second) << "came out twice";
    }
    if (prng_.Chance(0.8)) CompleteAll();
  }
  void CompleteAll() {
    for (Request* request : device_) {
      scheduler_.Completed(request, now_);
      ++done_;
    }
    device_.clear();
  }
  void CancelOne() {
    if (requests_.empty()) return;
    Request* request = &requests_[prng_.Uniform(0, requests_.size() - 1)];
    if (scheduler_.Cancel(request, now_)) ++cancelled_;
  }

  Prng prng_;
  TimePoint now_{0};
  Scheduler scheduler_;
  std::deque<Request> requests_;
  std::set<Request*> device_;
  uint64_t done_ = 0;
  uint64_t cancelled_ = 0;
};

TEST(ReconfigureTest, NoRequestIsLostOrDoubledWhateverChanges) {
  const uint64_t seed = weir::testing::TestSeed();
  for (uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(seed + round);
    ReconfigureRun run(seed + round);
    for (int i = 0; i < 1500; ++i) run.Step();
    run.Drain();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// A class is removed while the device has a request of it, and a new one gets its number: the
// request is class 0's by now.
TEST(ReconfigureTest, ANewClassOfAnOldNumberDoesNotInheritWhatIsOnTheDevice) {
  constexpr ClassId kReused{16};
  Scheduler scheduler(*ApplyProfile("sfq", {}), TimePoint{0});
  scheduler.SetClass(Spec(kReused), TimePoint{0});
  Request request;
  request.class_id = kReused;
  request.bytes = 64 * kKiB;
  scheduler.Enqueue(&request, TimePoint{0});
  ASSERT_EQ(scheduler.Pull(TimePoint{0}).request, &request);
  scheduler.RemoveClass(kReused, TimePoint{0});
  scheduler.SetClass(Spec(kReused), TimePoint{0});
  scheduler.Completed(&request, TimePoint{0});
  for (const ClassCounters& counters : scheduler.Counters(TimePoint{0})) {
    EXPECT_EQ(counters.served_bytes, counters.id == kReused ? 0 : 64 * kKiB);
  }
}

TEST(ReconfigureTest, ProfilesSwitchUnderLoad) {
  SchedulerConfig base;
  base.token_rate = 40 * kMiB;
  base.best_effort_min = 0;
  base.depth = 4;
  Cluster cluster(1, *ApplyProfile("noqos", base), 60 * kMiB);
  cluster.SetClass(testing::Reserved(ClassId(16), 5 * kMiB));
  cluster.SetClass(testing::Reserved(ClassId(17), 35 * kMiB));
  Load* f = cluster.Start({.class_id = ClassId(16), .outstanding = 64});
  Load* g = cluster.Start({.class_id = ClassId(17), .outstanding = 64});
  cluster.RunTo(5s);
  EXPECT_NEAR(f->MiBps(1s, 5s), 30, 1);
  SchedulerConfig odis = *ApplyProfile("odis", base);
  odis.maximizer = false;
  cluster.Configure(odis);
  cluster.RunTo(10s);
  EXPECT_NEAR(f->MiBps(6s, 10s), 5, 0.3);
  EXPECT_NEAR(g->MiBps(6s, 10s), 35, 0.7);
  cluster.Configure(*ApplyProfile("unified", base));
  cluster.RunTo(15s);
  EXPECT_NEAR(f->MiBps(11s, 15s), 25, 1);
  EXPECT_NEAR(g->MiBps(11s, 15s), 35, 1);
  cluster.SetClass(Spec(ClassId(17), 3));
  cluster.RunTo(20s);
  EXPECT_NEAR(f->MiBps(16s, 20s), 15, 1);
  EXPECT_NEAR(g->MiBps(16s, 20s), 45, 1);
}

TEST(ReconfigureTest, ANewTokenRateHoldsAtOnceAndRestartsTheMaximizer) {
  SchedulerConfig base;
  base.token_rate = 40 * kMiB;
  SchedulerConfig config = *ApplyProfile("odis", base);
  Scheduler scheduler(config, TimePoint{0});
  EXPECT_EQ(scheduler.State({}).token_rate, 40 * kMiB);
  config.token_rate = 20 * kMiB;
  scheduler.Configure(config, TimePoint{0} + 1s);
  EXPECT_EQ(scheduler.State({}).token_rate, 20 * kMiB);
}

}  // namespace
}  // namespace weir::osd::qos
