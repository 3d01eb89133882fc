// Goal: a promise in requests over all OSDs is one promise under finish times too, however the
// access is spread. Prevents: as many times the promise as there are OSDs.
#include "osd/qos/dispatch/virtual_clock.h"

#include <gtest/gtest.h>

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

constexpr ClassId kGold{16}, kRest{17};

// Requests per second of a class with 900 promised over three OSDs, each of which can do 7,680, of
// which 7,300 are promised to somebody else.
double GoldServed(double on_first) {
  SchedulerConfig base;
  base.token_rate = 60 * kMiB;
  base.best_effort_min = 0;
  Cluster cluster(3, *ApplyProfile("vc", base), 60 * kMiB);
  ClassSpec gold = Spec(kGold);
  gold.reservation = Reservation{0, ReservationScope::kCluster, std::nullopt, 900};
  cluster.SetClass(gold);
  ClassSpec rest = Spec(kRest);
  rest.reservation = Reservation{0, ReservationScope::kOsd, std::nullopt, 7300};
  cluster.SetClass(rest);
  Prng prng(weir::testing::TestSeed());
  Load* load = cluster.Start(
      {.class_id = kGold, .outstanding = 48, .bytes = 8 * kKiB, .route = [&](uint64_t) {
         return std::pair<size_t, size_t>(prng.Chance(on_first) ? 0 : prng.Uniform(1, 2), 0);
       }});
  for (size_t osd = 0; osd < 3; ++osd) {
    cluster.Start({.class_id = kRest,
                   .outstanding = 64,
                   .bytes = 8 * kKiB,
                   .osd = osd,
                   .coordinator = 1 + osd});
  }
  cluster.RunTo(20s);
  return load->Iops(2s, 20s);
}

TEST(VirtualClockTest, APromiseOverAllOsdsIsOne) {
  for (const double on_first : {1.0 / 3, 0.8, 1.0}) {
    EXPECT_NEAR(GoldServed(on_first), 900, 0.03 * 900) << on_first << " of it on one OSD";
  }
}

}  // namespace
}  // namespace weir::osd::qos
