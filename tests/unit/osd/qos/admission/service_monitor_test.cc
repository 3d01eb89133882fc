#include "osd/qos/admission/service_monitor.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint At(Duration since) {
  return TimePoint{0} + since;
}

TEST(DelayClockTest, OnlyTheFirstMaxPendingPlusOneCount) {
  DelayClock clock(1);
  for (uint64_t id = 0; id < 4; ++id) clock.Arrived(id, At(0ms));
  EXPECT_EQ(clock.Completed(1, At(10ms)), 10ms);  // 2 begins to count
  EXPECT_EQ(clock.Completed(3, At(20ms)), 0ms);   // overtook: its clock never ran
  EXPECT_EQ(clock.Completed(0, At(25ms)), 25ms);
  EXPECT_EQ(clock.Completed(2, At(40ms)), 30ms);
}

TEST(ServiceMonitorTest, QuantilesAreThoseOfTheSamples) {
  ServiceMonitor monitor(100s, At(0s));
  for (int i = 0; i < 1000; ++i) monitor.NoteDelay(i / 1000.0, At(1s));
  EXPECT_NEAR(monitor.ServicePart(0.95), 0.95, 0.011);
  EXPECT_NEAR(monitor.ServicePart(0.5), 0.50, 0.011);
  for (int i = 0; i < 100'000; ++i) monitor.NoteDelay(7, At(1s));
  EXPECT_GT(monitor.ServicePart(0.95), 3);
}

TEST(ServiceMonitorTest, RatesAreTakenPerSecondIdleOnesToo) {
  ServiceMonitor monitor(1000s, At(0s));
  for (int second = 0; second < 10; ++second) {
    for (int i = 0; i < second; ++i) monitor.NoteRequest(At(second * 1s));
  }
  monitor.NoteRequest(At(20s));
  // 0, 1 ... 9, and ten seconds of nothing.
  EXPECT_DOUBLE_EQ(monitor.IoRate(1), 9);
  EXPECT_DOUBLE_EQ(monitor.IoRate(0.95), 8);
  EXPECT_DOUBLE_EQ(monitor.IoRate(0.5), 0);
}

TEST(ServiceMonitorTest, StableNeedsBothHalvesToAgree) {
  ServiceMonitor monitor(100s, At(0s));
  Prng prng(1);
  const auto fill = [&](Duration at, double scale) {
    for (int i = 0; i < 2000; ++i) monitor.NoteDelay(scale * prng.Real(), At(at));
  };
  fill(10s, 0.5);
  EXPECT_FALSE(monitor.Stable());
  fill(60s, 0.5);
  EXPECT_TRUE(monitor.Stable());
  EXPECT_TRUE(monitor.Measures().stable);
  fill(110s, 0.9);
  EXPECT_FALSE(monitor.Stable());
  fill(160s, 0.9);
  EXPECT_TRUE(monitor.Stable());
  EXPECT_NEAR(monitor.ServicePart(0.95), 0.855, 0.02);
  monitor.Restart(At(161s));
  EXPECT_EQ(monitor.samples(), 0u);
  EXPECT_FALSE(monitor.Stable());
}

TEST(ServiceMonitorTest, AWindowThatBeginsSmallIsStableEarlyAndForgetsLate) {
  ServiceMonitor monitor(400s, At(0s), 5s);
  const auto note = [&](int from, int to, double part) {
    for (int second = from; second < to; ++second) {
      for (int i = 0; i < 300; ++i) monitor.NoteDelay(part, At(second * 1s));
    }
  };
  note(0, 5, 0.1);
  EXPECT_FALSE(monitor.Stable());
  note(5, 10, 0.1);
  EXPECT_TRUE(monitor.Stable());
  EXPECT_EQ(monitor.samples(), 3000u);
  note(10, 300, 0.1);
  EXPECT_GE(monitor.samples(), 80'000u);  // it has grown: nothing of it is forgotten yet
  monitor.Restart(At(300s));
  EXPECT_EQ(monitor.samples(), 0u);
}

TEST(ServiceMonitorTest, AReportHoldsTheQuantiles) {
  ServiceMonitor monitor(100s, At(0s));
  EXPECT_TRUE(monitor.Report().service_parts.empty());
  for (int i = 0; i < 1000; ++i) monitor.NoteDelay(i / 1000.0, At(1s));
  monitor.NoteRequest(At(1s), 2.5);
  monitor.NoteDelay(0, At(2s));
  const ServiceReport report = monitor.Report();
  EXPECT_DOUBLE_EQ(report.service_parts.at(94), monitor.ServicePart(0.95));
  EXPECT_DOUBLE_EQ(report.io_rates.at(99), 2.5);
}

}  // namespace
}  // namespace weir::osd::qos
