#include "osd/qos/control/bottleneck_aware.h"

#include <gtest/gtest.h>

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint kStart{};
constexpr ClassId kOltp{16}, kMail{17}, kNew{18};

HitWindow::Options Window(uint64_t requests, Duration span) {
  return {.requests = requests, .span = span};
}

TEST(HitWindowTest, HoldsTheLastRequests) {
  HitWindow window(Window(100, 60s), kStart);
  for (int i = 0; i < 500; ++i) window.Add(0, kStart + 1ms * i);
  EXPECT_LE(window.Samples(kStart + 500ms), 100u);
  EXPECT_GE(window.Samples(kStart + 500ms), 95u);
  EXPECT_DOUBLE_EQ(window.Fractions(kStart + 500ms)[0], 1);
  for (int i = 0; i < 50; ++i) window.Add(1, kStart + 500ms);
  EXPECT_NEAR(window.Fractions(kStart + 500ms)[1], .5, .03);
  for (int i = 0; i < 50; ++i) window.Add(1, kStart + 500ms);
  EXPECT_DOUBLE_EQ(window.Fractions(kStart + 500ms)[1], 1);
}

TEST(HitWindowTest, ForgetsAfterItsSpanButKeepsTheLastFractions) {
  HitWindow window(Window(0, 60s), kStart);
  for (int i = 0; i < 3000; ++i) window.Add(i % 4 == 0 ? 1 : 0, kStart + 10ms * i);
  EXPECT_EQ(window.Samples(kStart + 30s), 3000u);
  EXPECT_NEAR(static_cast<double>(window.Samples(kStart + 75s)), 1500, 301);
  EXPECT_EQ(window.Samples(kStart + 95s), 0u);
  EXPECT_NEAR(window.Fractions(kStart + 95s)[1], .25, .01);
  window.Add(1, kStart + 200s);
  EXPECT_DOUBLE_EQ(window.Fractions(kStart + 200s)[1], 1);
}

TEST(TierMeterTest, CapacityIsWhatABusyTierDoesOnAGoodDay) {
  TierMeter meter;
  for (uint64_t i = 0; i < 50; ++i) meter.Observe({.completed = 10, .busy = 500ms}, 1s);
  EXPECT_DOUBLE_EQ(meter.busy(), .5);
  EXPECT_EQ(meter.Capacity(), 0);  // never busy: nobody knows
  for (uint64_t i = 0; i < 20; ++i) meter.Observe({.completed = 100 + i, .busy = 1s}, 1s);
  EXPECT_DOUBLE_EQ(meter.Capacity(), 118);
}

class BottleneckAwareTest : public ::testing::Test {
 protected:
  // `oltp` and `mail`: their hit ratios; both send 1000 requests a second.
  void Send(BottleneckAware* loop, double oltp, double mail, Duration from, Duration to) {
    for (Duration at = from; at < to; at += 1ms) {
      ++sent_;
      const double place = static_cast<double>(sent_ % 100) / 100;
      loop->Count(kOltp, place < oltp ? 1 : 0, kStart + at);
      loop->Count(kMail, place < mail ? 1 : 0, kStart + at);
    }
  }
  static BottleneckAware::Options Paper() {
    return {.tiers = {.count = 2, .capacity = {200, 3000}},
            .period = 100s,
            .window = Window(0, 60s),
            .alarm = false};
  }
  uint64_t sent_ = 0;
};

// Figure 5: .45 and .95 on 200 + 3000 give 1 : 11; at .2 the ratio is 1 : 16, known at the next
// period.
TEST_F(BottleneckAwareTest, FollowsAChangeOfHitRatiosAtTheNextPeriod) {
  BottleneckAware loop(Paper(), kStart);
  Send(&loop, .45, .95, 0s, 100s);
  EXPECT_TRUE(loop.Tick(kStart + 99s).empty());
  auto weights = loop.Tick(kStart + 100s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].id, kOltp);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 11, .2);
  EXPECT_NEAR(weights[0].weight + weights[1].weight, 1, 1e-12);
  EXPECT_NEAR(loop.allocation().total, 2181.8, 5);

  Send(&loop, .2, .95, 110s, 200s);
  weights = loop.Tick(kStart + 200s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 16, .2);
}

TEST_F(BottleneckAwareTest, LeavesWeightsAloneWhenTheyHardlyMove) {
  BottleneckAware loop(Paper(), kStart);
  Send(&loop, .45, .95, 0s, 100s);
  EXPECT_FALSE(loop.Tick(kStart + 100s).empty());
  Send(&loop, .45, .95, 100s, 200s);
  EXPECT_TRUE(loop.Tick(kStart + 200s).empty());
  EXPECT_EQ(loop.solved(), 2u);
}

TEST_F(BottleneckAwareTest, AnIdleTierBesideAFullOneRaisesTheAlarmOnceASecond) {
  BottleneckAware::Options options = Paper();
  options.alarm = true;
  options.window = Window(1000, 60s);
  BottleneckAware loop(options, kStart);
  Send(&loop, .45, .95, 0s, 5s);
  const std::vector<TierActivity> even{{.completed = 200, .busy = 1s},
                                       {.completed = 2700, .busy = 900ms}};
  loop.Observe(even, kStart + 4s);
  EXPECT_EQ(loop.NextTick(), kStart + 100s);
  const std::vector<TierActivity> lopsided{{.completed = 200, .busy = 1s},
                                           {.completed = 900, .busy = 300ms}};
  loop.Observe(lopsided, kStart + 5s);
  EXPECT_EQ(loop.NextTick(), kStart + 5s);
  EXPECT_FALSE(loop.Tick(kStart + 5s).empty());
  loop.Observe(lopsided, kStart + 5s + 500ms);
  EXPECT_EQ(loop.NextTick(), kStart + 105s);
  loop.Observe(lopsided, kStart + 6s + 500ms);
  EXPECT_EQ(loop.NextTick(), kStart + 6s + 500ms);
}

TEST_F(BottleneckAwareTest, MeasuresCapacitiesThatNobodyConfigured) {
  BottleneckAware::Options options = Paper();
  options.tiers.capacity = {};
  options.period = 1s;
  BottleneckAware loop(options, kStart);
  Send(&loop, .45, .95, 0s, 10s);
  EXPECT_TRUE(loop.Tick(kStart + 1s).empty());
  const std::vector<TierActivity> full{{.completed = 200, .busy = 1s},
                                       {.completed = 3000, .busy = 1s}};
  for (int i = 1; i <= 5; ++i) loop.Observe(full, kStart + 1s * i);
  const auto weights = loop.Tick(kStart + 10s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 11, .2);
}

// A33: who is silent does not take part, and whoever may begin has the weight to do so.
TEST_F(BottleneckAwareTest, SilentAndNewClassesGetTheirFairShareAndCountForNothing) {
  BottleneckAware loop(Paper(), kStart);
  Send(&loop, .45, .95, 0s, 100s);
  loop.SetWeight(kNew, 1, kStart);
  const auto weights = loop.Tick(kStart + 100s);
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_EQ(loop.allocation().rates.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 11, .2);
  // A newcomer is taken to load both tiers equally: 3200 alone, half of it beside two others.
  EXPECT_NEAR(weights[2].weight / weights[0].weight, 1600 / 181.8, .2);

  // A class that falls silent keeps its last fractions.
  for (int i = 0; i < 1000; ++i) loop.Count(kMail, i % 20 == 0 ? 0 : 1, kStart + 190s);
  const auto later = loop.Tick(kStart + 200s);
  ASSERT_EQ(later.size(), 3u);
  EXPECT_EQ(loop.allocation().rates.size(), 1u);
  EXPECT_NEAR(later[0].weight / later[1].weight, 200 / .55 / (3000 / .95), .01);
}

TEST_F(BottleneckAwareTest, TheRuleIsChosenWhileItRuns) {
  BottleneckAware loop(Paper(), kStart);
  Send(&loop, .45, .95, 0s, 100s);
  EXPECT_FALSE(loop.Tick(kStart + 100s).empty());
  loop.Configure({.kind = AllocationKind::kDominantResource, .period = 100s, .window = 60s},
                 kStart + 100s);
  auto weights = loop.Tick(kStart + 100s);  // at once
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, .55 / 200 / (.95 / 3000), .2);
  loop.Configure({.kind = AllocationKind::kFair, .period = 100s, .window = 60s}, kStart + 100s);
  weights = loop.Tick(kStart + 100s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 1, 1e-9);
  EXPECT_EQ(loop.NextTick(), kStart + 200s);
}

TEST_F(BottleneckAwareTest, AnotherWindowBeginsAnew) {
  BottleneckAware loop(Paper(), kStart);
  Send(&loop, .45, .95, 0s, 100s);
  loop.Configure({.period = 10s, .window = 6s}, kStart + 100s);
  EXPECT_TRUE(loop.Tick(kStart + 100s).empty());
  Send(&loop, .2, .95, 100s, 110s);
  const auto weights = loop.Tick(kStart + 110s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 16, .2);
}

// A tier that equal weights never fill would stay unknown: it is taken to do a quarter more than it
// does, again and again.
TEST_F(BottleneckAwareTest, ATierThatIsNotFullIsTakenToDoMore) {
  BottleneckAware::Options options = Paper();
  options.tiers.capacity = {};
  options.nominal = {50, 50};
  options.period = 1s;
  BottleneckAware loop(options, kStart);
  Send(&loop, .45, .95, 0s, 10s);
  EXPECT_FALSE(loop.Tick(kStart + 1s).empty());  // as if both were the same
  const std::vector<TierActivity> lopsided{{.completed = 200, .busy = 1s},
                                           {.completed = 600, .busy = 200ms}};
  for (int i = 1; i <= 5; ++i) loop.Observe(lopsided, kStart + 1s * i);
  EXPECT_DOUBLE_EQ(loop.CurrentTiers().capacity[0], 200);
  EXPECT_DOUBLE_EQ(loop.CurrentTiers().capacity[1], 750);
  const std::vector<TierActivity> full{{.completed = 200, .busy = 1s},
                                       {.completed = 3000, .busy = 1s}};
  for (int i = 6; i <= 10; ++i) loop.Observe(full, kStart + 1s * i);
  EXPECT_DOUBLE_EQ(loop.CurrentTiers().capacity[1], 3000);
  const auto weights = loop.Tick(kStart + 10s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight / weights[0].weight, 11, .2);
}

TEST_F(BottleneckAwareTest, WeightsOfOperatorsAreObeyed) {
  BottleneckAware loop(Paper(), kStart);
  loop.SetWeight(kMail, 2, kStart);
  Send(&loop, .95, .95, 0s, 100s);
  const auto weights = loop.Tick(kStart + 100s);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_NEAR(weights[1].weight, 2.0 / 3, 1e-9);
}

}  // namespace
}  // namespace weir::osd::qos
