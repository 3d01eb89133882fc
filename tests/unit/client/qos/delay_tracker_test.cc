#include "client/qos/delay_tracker.h"

#include <array>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::client {
namespace {

constexpr ClassId kF{16};
constexpr OsdId kA{0};
constexpr OsdId kX{1};

// DSFQ figure 5 / 7: the stream A x x A A with unit costs.
TEST(DelayTrackerTest, OneCoordinatorCountsWhatWentElsewhereSinceTheLastRequest) {
  DelayTracker tracker;
  EXPECT_EQ(tracker.OnSend(kF, kA, 1), 0);
  EXPECT_EQ(tracker.OnSend(kF, kX, 1), 1);  // A3: a first request counts all since the beginning
  EXPECT_EQ(tracker.OnSend(kF, kX, 1), 0);
  EXPECT_EQ(tracker.OnSend(kF, kA, 1), 2);
  EXPECT_EQ(tracker.OnSend(kF, kA, 1), 0);
  EXPECT_EQ(tracker.Cumulative(kF), 5);
}

TEST(DelayTrackerTest, TwoCoordinatorsInTurnSendTheSameSumOfDelays) {
  std::array<DelayTracker, 2> coordinators;
  const std::array<OsdId, 5> stream{kA, kX, kX, kA, kA};
  std::array<int64_t, 2> at_a{};
  for (size_t i = 0; i < stream.size(); ++i) {
    const int64_t delay = coordinators[i % 2].OnSend(kF, stream[i], 1);
    if (stream[i] == kA) at_a[i % 2] += delay;
  }
  EXPECT_EQ(at_a[0], 1);  // A x . . A -> 0, 1
  EXPECT_EQ(at_a[1], 1);  // x A       -> 1
}

TEST(DelayTrackerTest, ACoordinatorThatServesOneOsdOnlySeesNoDelay) {
  DelayTracker first, second;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(first.OnSend(kF, kA, 3), 0);
    EXPECT_EQ(second.OnSend(kF, kX, 3), 0);
  }
}

// I-8: however a stream is split, what was said at an OSD plus what is still unsaid is the service
// elsewhere.
TEST(DelayTrackerTest, DelaysSaidAndUnsaidAddUpToTheServiceElsewhere) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::array<DelayTracker, 4> coordinators;
    std::array<int64_t, 5> said{}, sent{};
    int64_t total = 0;
    for (int i = 0; i < 50; ++i) {
      const auto osd = static_cast<uint32_t>(prng.Uniform(0, 4));
      const auto cost = static_cast<int64_t>(prng.Uniform(1, 100));
      said[osd] += coordinators[prng.Uniform(0, 3)].OnSend(kF, OsdId(osd), cost);
      sent[osd] += cost;
      total += cost;
    }
    for (uint32_t osd = 0; osd < 5; ++osd) {
      int64_t unsaid = 0;
      for (const DelayTracker& tracker : coordinators) unsaid += tracker.Unsent(kF, OsdId(osd));
      ASSERT_EQ(said[osd] + unsaid, total - sent[osd]);
    }
  }
}

// Random choice among n coordinators smooths bursts of 20: variance 18.98, 9.48, 4.74.
TEST(DelayTrackerTest, MoreCoordinatorsSmoothLumpyDelays) {
  const std::array<double, 3> expected{18.98, 9.48, 4.74};
  for (int which = 0; which < 3; ++which) {
    Prng prng(weir::testing::TestSeed() + which);
    std::array<DelayTracker, 4> coordinators;
    double sum = 0, squares = 0;
    constexpr int kCount = 200'000;
    for (int i = 0; i < kCount; ++i) {
      const OsdId osd(static_cast<uint32_t>(i / 20 % 2));
      const uint64_t coordinator = prng.Uniform(0, (1u << which) - 1);
      const auto delay = static_cast<double>(coordinators[coordinator].OnSend(kF, osd, 1));
      sum += delay;
      squares += delay * delay;
    }
    const double mean = sum / kCount;
    EXPECT_NEAR(mean, 1.0, 0.02);
    EXPECT_NEAR(squares / kCount - mean * mean, expected[which], 0.05 * expected[which]);
  }
}

TEST(DelayTrackerTest, AForgottenClassStartsAnew) {
  DelayTracker tracker;
  tracker.OnSend(kF, kX, 7);
  tracker.Forget(kF);
  EXPECT_EQ(tracker.Cumulative(kF), 0);
  EXPECT_EQ(tracker.Unsent(kF, kA), 0);
  EXPECT_EQ(tracker.OnSend(kF, kA, 7), 0);
}

}  // namespace
}  // namespace weir::client
