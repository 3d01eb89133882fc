// Ceilings: a class above its limit is served by no stage, and earns no credit by waiting.
#include <gmock/gmock.h>

#include "common/testing/seed.h"
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

ClassSpec Limited(ClassSpec spec, uint64_t limit) {
  spec.limit_bytes_per_s = limit;
  return spec;
}

SchedulerConfig Config(std::string_view profile) {
  SchedulerConfig base;
  base.token_rate = 100 * kMiB;
  base.best_effort_min = 0;
  base.depth = 4;
  return *ApplyProfile(profile, base);
}

TEST(LimitTest, HoldsUnderEveryProfileAndAlsoWhenTheDeviceIsFree) {
  for (const char* profile :
       {"noqos", "odis", "sfq", "dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h", "unified"}) {
    Cluster cluster(1, Config(profile), 100 * kMiB);
    cluster.SetClass(Limited(Spec(kF), 10 * kMiB));
    Load* alone = cluster.Start({.class_id = kF, .outstanding = 16});
    cluster.RunTo(10s);
    EXPECT_NEAR(alone->MiBps(1s, 10s), 10, 0.1) << profile;
  }
}

TEST(LimitTest, CutsAPromiseThatExceedsItWithoutCallingThatAViolation) {
  Cluster cluster(1, Config("unified"), 100 * kMiB);
  cluster.SetClass(Limited(Reserved(kF, 50 * kMiB), 10 * kMiB));
  Load* alone = cluster.Start({.class_id = kF, .outstanding = 16});
  cluster.RunTo(10s);
  EXPECT_NEAR(alone->MiBps(1s, 10s), 10, 0.1);
  EXPECT_EQ(cluster.osd().scheduler().Counters(cluster.events().now())[1].violation_seconds, 0u);
}

TEST(LimitTest, ALiftedLimitFindsNoSavedCredit) {
  Cluster cluster(1, Config("unified"), 100 * kMiB);
  cluster.SetClass(Limited(Spec(kF), 5 * kMiB));
  cluster.SetClass(Spec(kG));
  // So many that most still wait, with an old arrival, when the limit goes.
  Load* f = cluster.Start({.class_id = kF, .outstanding = 2000});
  Load* g = cluster.Start({.class_id = kG, .outstanding = 48});
  cluster.RunTo(10s);
  EXPECT_NEAR(f->MiBps(1s, 10s), 5, 0.1);
  EXPECT_NEAR(g->MiBps(1s, 10s), 95, 1);
  cluster.SetClass(Spec(kF));
  cluster.RunTo(15s);
  EXPECT_NEAR(f->MiBps(10s, 11s), 50, 4);
  EXPECT_NEAR(g->MiBps(11s, 15s), 50, 1);
}

TEST(LimitTest, IsATotalOverAllOsdsUnlessThePromiseIsPerOsd) {
  for (const bool per_osd : {false, true}) {
    Cluster cluster(2, Config("unified"), 100 * kMiB);
    cluster.SetClass(Limited(per_osd ? Reserved(kF, kMiB) : Spec(kF), 10 * kMiB));
    const auto route = [](uint64_t n) { return std::pair<size_t, size_t>(n % 2, 0); };
    Load* f = cluster.Start({.class_id = kF, .outstanding = 32, .route = route});
    cluster.RunTo(10s);
    EXPECT_NEAR(f->MiBps(1s, 10s), per_osd ? 20 : 10, 0.5);
  }
}

// The most that a load was served in any second, by completions.
double WorstSecond(const Load& load, Duration from, Duration to) {
  double worst = 0;
  for (Duration at = from; at + 1s <= to; at += 10ms) {
    worst = std::max(worst, load.MiBps(at, at + 1s));
  }
  return worst;
}

TEST(LimitTest, NoSecondExceedsItByMoreThanTwoPercent) {
  for (const size_t osds : {1, 3}) {
    Cluster cluster(osds, Config("unified"), 60 * kMiB);
    cluster.SetClass(Limited(Spec(kF), 10 * kMiB));
    cluster.SetClass(Spec(kG));
    // Mostly to the first, in lumps.
    const auto route = [osds](uint64_t n) {
      return std::pair<size_t, size_t>(n % 16 < 12 ? 0 : n % osds, 0);
    };
    const auto even = [osds](uint64_t n) { return std::pair<size_t, size_t>(n % osds, 0); };
    Load* f =
        cluster.Start({.class_id = kF, .outstanding = 16, .bytes = 64 * kKiB, .route = route});
    cluster.Start({.class_id = kG, .outstanding = 24, .bytes = 64 * kKiB, .route = even});
    cluster.RunTo(20s);
    EXPECT_LE(WorstSecond(*f, 0s, 20s), 10 * 1.02 + 1.0 / 16) << osds;
    EXPECT_GE(f->MiBps(5s, 20s), osds == 1 ? 9.8 : 9.5) << osds;
  }
}

// One scheduler whose device takes no time, asked in random bursts of random sizes.
class RandomBursts {
 public:
  RandomBursts(uint64_t limit, uint64_t largest, Prng& prng)
      : scheduler_(Config("unified"), now_), largest_(largest), prng_(prng) {
    scheduler_.SetClass(Limited(Spec(kF), limit), now_);
  }

  void RunTo(TimePoint end) {
    TimePoint arrival = now_;
    while (now_ < end) {
      const std::optional<TimePoint> wake = ServeAll();
      now_ = std::min(arrival, wake.value_or(TimePoint::Max()));
      if (now_ < arrival) continue;
      for (uint64_t i = prng_.Uniform(1, 64); i > 0; --i) Arrive();
      const int64_t pause_ms = prng_.Uniform(0, 9) == 0 ? 3000 : 20;
      arrival = now_ + std::chrono::milliseconds(prng_.Uniform(0, pause_ms));
    }
  }

  // The most bytes of any second, by the moments at which requests went to the device.
  [[nodiscard]] uint64_t MostInASecond() const {
    uint64_t most = 0, sum = 0;
    for (size_t first = 0, last = 0; first < served_.size(); ++first) {
      for (; last < served_.size() && served_[last].first < served_[first].first + 1s; ++last) {
        sum += served_[last].second;
      }
      most = std::max(most, sum);
      sum -= served_[first].second;
    }
    return most;
  }

 private:
  void Arrive() {
    requests_.push_back(std::make_unique<Request>());
    requests_.back()->class_id = kF;
    requests_.back()->bytes = prng_.Uniform(1, largest_ / kKiB) * kKiB;
    scheduler_.Enqueue(requests_.back().get(), now_);
  }
  std::optional<TimePoint> ServeAll() {
    for (;;) {
      const PullResult pulled = scheduler_.Pull(now_);
      if (pulled.request == nullptr) return pulled.wake_at;
      served_.emplace_back(now_, pulled.request->bytes);
      scheduler_.Completed(pulled.request, now_);
    }
  }

  TimePoint now_{0};
  Scheduler scheduler_;
  const uint64_t largest_;
  Prng& prng_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::pair<TimePoint, uint64_t>> served_;
};

// Goal: whatever is asked, no second has more than the limit, a hundredth of it, and one request.
TEST(LimitTest, NoSecondHasMoreThanAHundredthAndARequestBeyondIt) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 40; ++round) {
    const uint64_t limit = prng.Uniform(1, 64) * kMiB;
    const uint64_t largest = uint64_t{4 * kKiB} << prng.Uniform(0, 7);
    RandomBursts bursts(limit, largest, prng);
    bursts.RunTo(TimePoint{0} + 5s);
    EXPECT_LE(bursts.MostInASecond(), limit + limit / 100 + largest)
        << "limit " << limit << ", largest request " << largest;
  }
}

TEST(LimitTest, WakesAtTheMomentOfTheNextToken) {
  Scheduler scheduler(Config("noqos"), TimePoint{0});
  scheduler.SetClass(Limited(Spec(kF), 1024 * kKiB), TimePoint{0});  // a token per 976,562.5 ns
  std::vector<Request> requests(2);
  for (Request& request : requests) {
    request.class_id = kF;
    request.bytes = 8 * kKiB;  // what the bucket holds at first: 8 ms
    scheduler.Enqueue(&request, TimePoint{0});
  }
  ASSERT_EQ(scheduler.Pull(TimePoint{0}).request, &requests[0]);
  const PullResult held = scheduler.Pull(TimePoint{0});
  EXPECT_EQ(held.request, nullptr);
  ASSERT_TRUE(held.wake_at.has_value());
  EXPECT_EQ(*held.wake_at, TimePoint{7'812'500});  // 8 tokens short of nothing
  EXPECT_EQ(scheduler.Pull(*held.wake_at - 1ns).request, nullptr);
  EXPECT_EQ(scheduler.Pull(*held.wake_at).request, &requests[1]);
}

}  // namespace
}  // namespace weir::osd::qos
