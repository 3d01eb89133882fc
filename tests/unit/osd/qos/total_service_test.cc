// Shares and promises over several OSDs, by nothing but the delay that each request carries (DSFQ
// §3; RULES.md §3.7).
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

SchedulerConfig Profile(std::string_view name) {
  SchedulerConfig base;
  base.depth = 8;
  base.token_rate = 60 * kMiB;
  base.best_effort_min = 0;
  return *ApplyProfile(name, base);
}

struct Shares {
  double f = 0, g_on_a = 0, g_on_b = 0;  // MiB/s
  [[nodiscard]] double g() const { return g_on_a + g_on_b; }
};

// The paper's example 1: f on OSD 0 only, g on both; `b_pace` is what g wants on OSD 1 (0: all).
Shares TwoBricks(const SchedulerConfig& config, double w_f, double w_g, double b_pace,
                 size_t coordinators = 1) {
  Cluster cluster(2, config, 60 * kMiB);
  cluster.SetClass(Spec(kBestEffort, 1e-6));  // not registered in the paper's sums
  cluster.SetClass(Spec(kF, w_f));
  cluster.SetClass(Spec(kG, w_g));
  Prng prng(weir::testing::TestSeed());
  const auto route = [&](size_t osd) {
    return [&prng, osd, coordinators](uint64_t) {
      return std::pair<size_t, size_t>(osd, prng.Uniform(0, coordinators - 1));
    };
  };
  Load* f =
      cluster.Start({.class_id = kF, .outstanding = 30, .bytes = 16 * kKiB, .route = route(0)});
  Load* g_a =
      cluster.Start({.class_id = kG, .outstanding = 30, .bytes = 16 * kKiB, .route = route(0)});
  Load* g_b = cluster.Start({.class_id = kG,
                             .outstanding = 30,
                             .bytes = 16 * kKiB,
                             .pace = b_pace * kMiB,
                             .route = route(1)});
  cluster.RunTo(30s);
  return {f->MiBps(5s, 30s), g_a->MiBps(5s, 30s), g_b->MiBps(5s, 30s)};
}

TEST(TotalServiceTest, SingleSharesEveryOsdByItself) {
  const Shares shares = TwoBricks(Profile("sfq"), 1, 1, 0);
  EXPECT_NEAR(shares.f, 30, 0.6);
  EXPECT_NEAR(shares.g_on_a, 30, 0.6);
  EXPECT_NEAR(shares.g_on_b, 60, 0.6);
}

TEST(TotalServiceTest, TotalMakesTheSumsEqual) {
  for (double b : {10.0, 20.0, 40.0}) {
    const Shares shares = TwoBricks(Profile("dsfq-total"), 1, 1, b);
    EXPECT_NEAR(shares.f, (60 + b) / 2, 0.03 * (60 + b) / 2);  // Theorem 3
    EXPECT_NEAR(shares.g() / shares.f, 1, 0.05) << b;
  }
}

TEST(TotalServiceTest, TotalKeepsTheWeights) {
  const Shares shares = TwoBricks(Profile("dsfq-total"), 1, 2, 30);
  EXPECT_NEAR(shares.g() / shares.f, 2, 0.1);
  EXPECT_NEAR(shares.f + shares.g_on_a, 60, 0.6);
}

TEST(TotalServiceTest, TwoCoordinatorsGiveTheSame) {
  for (size_t coordinators : {2, 4}) {
    const Shares equal = TwoBricks(Profile("dsfq-total"), 1, 1, 30, coordinators);
    EXPECT_NEAR(equal.g() / equal.f, 1, 0.05);
    const Shares weighted = TwoBricks(Profile("dsfq-total"), 1, 2, 30, coordinators);
    EXPECT_NEAR(weighted.g() / weighted.f, 2, 0.1);
  }
}

// Equal sums are impossible when g takes all of OSD 1: it keeps its minimum on OSD 0, a tenth of
// its share of one half.
TEST(TotalServiceTest, HybridKeepsTheMinimumWhereTotalWouldBlock) {
  const Shares hybrid = TwoBricks(Profile("dsfq-hybrid"), 1, 1, 0);
  EXPECT_NEAR(hybrid.g_on_a, 0.05 * 60, 0.1 * 0.05 * 60);
  const Shares total = TwoBricks(Profile("dsfq-total"), 1, 1, 0);
  EXPECT_LT(total.g_on_a, hybrid.g_on_a);
  const Shares possible = TwoBricks(Profile("dsfq-hybrid"), 1, 1, 20);
  EXPECT_NEAR(possible.g() / possible.f, 1, 0.05);
}

// As acceptance runs it: a strict gate, equal token rates, devices that could do more.
TEST(TotalServiceTest, TheStrictGateSharesTokensTheSameWay) {
  SchedulerConfig config = Profile("unified");
  config.gate = GateKind::kStrict;
  config.sharing = SharingKind::kTotal;
  config.token_rate = 40 * kMiB;
  const Shares shares = TwoBricks(config, 1, 1, 20);
  EXPECT_NEAR(shares.g() / shares.f, 1, 0.05);
  EXPECT_NEAR(shares.f + shares.g_on_a, 40, 0.8);
}

// E53: 40 MiB/s promised over three OSDs is 40 MiB/s served, however skewed, against hogs.
double ServedTotal(ReservationScope scope, uint64_t rate, const std::vector<double>& access,
                   Duration turn = Duration::max()) {
  SchedulerConfig config = Profile("unified");
  config.depth = 4;
  config.dispatch = DispatchKind::kFifo;
  Cluster cluster(3, config, 60 * kMiB);
  cluster.SetClass(Reserved(kF, rate, 0.05, scope));
  cluster.SetClass(Spec(kG, 0.95));
  for (size_t osd = 0; osd < 3; ++osd) {
    cluster.Start({.class_id = kG, .outstanding = 16, .osd = osd, .coordinator = 1 + osd});
  }
  Prng prng(weir::testing::TestSeed());
  const auto route = [&](uint64_t) {
    const bool reversed = (cluster.events().now() - TimePoint{0}) / turn % 2 == 1;
    double dice = prng.Real();
    size_t osd = 0;
    while (osd < 2 && dice >= access[osd]) dice -= access[osd++];
    return std::pair<size_t, size_t>(reversed ? 2 - osd : osd, 0);
  };
  Load* promised = cluster.Start({.class_id = kF, .outstanding = 48, .route = route});
  cluster.RunTo(20s);
  for (size_t osd = 0; osd < 3; ++osd) EXPECT_FALSE(cluster.osd(osd).saw_idle_while_queued());
  return promised->MiBps(2s, 20s);
}

TEST(TotalPromiseTest, HoldsUnderEverySkew) {
  const uint64_t rate = 40 * kMiB;
  EXPECT_NEAR(ServedTotal(ReservationScope::kCluster, rate, {1. / 3, 1. / 3, 1. / 3}), 40, 1.6);
  EXPECT_NEAR(ServedTotal(ReservationScope::kCluster, rate, {.8, .1, .1}), 40, 1.6);
  EXPECT_NEAR(ServedTotal(ReservationScope::kCluster, rate, {1, 0, 0}), 40, 1.6);
  EXPECT_NEAR(ServedTotal(ReservationScope::kCluster, rate, {.6, .3, .1}, 5s), 40, 2);
}

TEST(TotalPromiseTest, PerOsdPromisesFailUnderSkewAsKnown) {
  EXPECT_NEAR(ServedTotal(ReservationScope::kOsd, 40 * kMiB / 3, {.8, .1, .1}), 16.7, 1.7);
  EXPECT_NEAR(ServedTotal(ReservationScope::kOsd, 40 * kMiB, {.8, .1, .1}), 50.2, 5);
}

}  // namespace
}  // namespace weir::osd::qos
