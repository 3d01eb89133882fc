#include "osd/qos/device/cost_model.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint At(Duration since) {
  return TimePoint{0} + since;
}

TEST(DeviceClockTest, ChargesOfABusyPeriodAddUpToIt) {
  DeviceClock clock;
  EXPECT_EQ(clock.Completed(At(0ms), At(10ms)), 10ms);
  EXPECT_EQ(clock.Completed(At(0ms), At(14ms)), 4ms);
  EXPECT_EQ(clock.Completed(At(12ms), At(14ms)), 0ms);  // the same moment
  EXPECT_EQ(clock.Completed(At(20ms), At(23ms)), 3ms);  // idle time is nobody's
}

TEST(LinearFitTest, FindsFixedCostAndCostPerByte) {
  LinearFit fit(0.999);
  Prng prng(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bytes = prng.Uniform(1, 256) * 4096;
    const double exact = 100e-6 + 1e-9 * static_cast<double>(bytes);
    fit.Add(bytes, FromSeconds(exact * (0.9 + 0.2 * prng.Real())));
  }
  EXPECT_NEAR(fit.fixed(), 100e-6, 10e-6);
  EXPECT_NEAR(fit.per_byte(), 1e-9, 0.03e-9);
  EXPECT_NEAR(fit.Seconds(1 << 20), 100e-6 + 1e-9 * (1 << 20), 30e-6);
}

TEST(LinearFitTest, FollowsADeviceThatChanged) {
  LinearFit fit(0.999);
  for (int i = 0; i < 8000; ++i) {
    const uint64_t bytes = i % 2 == 0 ? 4096 : 65536;
    fit.Add(bytes, FromSeconds((i < 2000 ? 1e-9 : 5e-9) * static_cast<double>(bytes)));
  }
  EXPECT_NEAR(fit.per_byte(), 5e-9, 0.1e-9);
}

TEST(LinearFitTest, NeverGoesNegative) {
  LinearFit shrinking(0.999);  // large ones take less
  for (int i = 0; i < 100; ++i) shrinking.Add(i % 2 == 0 ? 4096 : 1 << 20, i % 2 == 0 ? 2ms : 1ms);
  EXPECT_EQ(shrinking.per_byte(), 0);
  EXPECT_NEAR(shrinking.fixed(), 0.0015, 1e-4);
  LinearFit bent(0.999);  // the line would start below zero
  for (int i = 0; i < 100; ++i) bent.Add(i % 2 == 0 ? 4096 : 8192, i % 2 == 0 ? 1ms : 4ms);
  EXPECT_EQ(bent.fixed(), 0);
  EXPECT_GT(bent.per_byte(), 0);
}

TEST(LinearFitTest, OneSizeIsPredictedExactly) {
  LinearFit fit(0.999);
  for (int i = 0; i < 20; ++i) fit.Add(65536, 1ms);
  EXPECT_NEAR(fit.Seconds(65536), 0.001, 1e-9);
}

// Goal: with several channels `busy` is what the device needs per request, `alone` the latency.
// Method: 4 requests on 4 channels of 1 ms, first one alone.
TEST(CostModelTest, TellsCapacityFromLatency) {
  CostModel model;
  std::vector<Request> requests(4);
  for (Request& request : requests) request.bytes = 4096;
  TimePoint now{0};
  model.Submitted(requests[0], 0);
  requests[0].dispatched = now;
  now += 1ms;
  EXPECT_EQ(model.Completed(requests[0], now), 1ms);
  EXPECT_EQ(model.last_alone(), now);
  for (int round = 0; round < 4000; ++round) {
    const auto which = static_cast<size_t>(round % 4);
    if (round >= 4) model.Completed(requests[which], now);
    requests[which].dispatched = now;
    model.Submitted(requests[which], round < 4 ? which : 3);
    if (round >= 3) now += 250us;
  }
  EXPECT_NEAR(ToSeconds(model.Busy(OpKind::kRead, 4096)), 250e-6, 5e-6);
  EXPECT_NEAR(ToSeconds(model.Alone(OpKind::kRead, 4096)), 1e-3, 1e-6);
}

// Goal: small reads between large writes do not take over the writes' cost, whatever the order of
// completions says. Method: one serial device, a write of 2 ms always under way, and a read of 10
// us that completes just before each write does.
TEST(CostModelTest, AMixKeepsThePricesApart) {
  CostModel model;
  Request write;
  Request read;
  write.op = OpKind::kWrite;
  write.bytes = 2 << 20;
  read.bytes = 4096;
  TimePoint now{0};
  const auto alone = [&](Request* request, Duration time) {
    request->dispatched = now;
    model.Submitted(*request, 0);
    now += time;
    model.Completed(*request, now);
  };
  alone(&write, 2ms);
  alone(&read, 10us);
  for (int i = 0; i < 1000; ++i) {
    write.dispatched = read.dispatched = now;
    model.Submitted(write, 0);
    model.Submitted(read, 1);
    now += 2ms;
    EXPECT_EQ(model.Completed(read, now), 2ms);
    now += 10us;
    model.Completed(write, now);
  }
  EXPECT_NEAR(ToSeconds(model.Busy(OpKind::kWrite, 2 << 20)), 2e-3, 5e-5);
  EXPECT_NEAR(ToSeconds(model.Busy(OpKind::kRead, 4096)), 10e-6, 1e-6);
}

// Goal: however long nothing but requests without bytes was done, what a byte takes stays a number.
TEST(CostModelTest, ARequestWithoutBytesIsWorthAToken) {
  CostModel model;
  Request request;
  request.bytes = 1 << 20;
  TimePoint now{0};
  for (int i = 0; i < 60'000; ++i) {
    request.dispatched = now;
    model.Submitted(request, 0);
    model.Completed(request, now += 1ms);
    request.bytes = 0;
  }
  EXPECT_NEAR(ToSeconds(model.WorkOf(64 << 10)), 64e-3, 1e-4);
  EXPECT_EQ(model.WorkOf(0), 0ms);
}

}  // namespace
}  // namespace weir::osd::qos
