// What a scheduler does while the device is kept short, at the root's gate, and when the device is
// done with a request before it is complete.
#include <algorithm>
#include <deque>
#include <map>

#include "tests/unit/osd/qos/scheduler_fixture.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kReader{16}, kWriters{17}, kLarge{18};
constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

class KeptShortTest : public testing::SchedulerFixture {
 protected:
  static SchedulerConfig Strict(uint64_t rate = 200 * kMiB) {
    SchedulerConfig base;
    base.token_rate = rate;
    SchedulerConfig config = *ApplyProfile("unified", base);
    config.gate = GateKind::kStrict;
    config.maximizer = false;
    return config;
  }
  static ClassSpec Class(ClassId id) {
    ClassSpec spec;
    spec.id = id;
    spec.name = "class" + std::to_string(id.value);
    return spec;
  }
  uint64_t ServedOps(Scheduler* scheduler) const {
    uint64_t ops = 0;
    for (const ClassCounters& one : scheduler->Counters(now_)) ops += one.served_ops;
    return ops;
  }
  // A device that takes 50 us for each request, pulling when told to and when the reader asks, if
  // it does, every 200 us, or when `eager_` whenever it has its answer. Returns how often no writer
  // went for a millisecond.
  size_t RunTo(Scheduler* scheduler, TimePoint end, bool reader) {
    size_t gaps = 0;
    TimePoint went = now_;
    TimePoint asks = now_;
    while (now_ < end) {
      for (; !device_.empty() && device_.begin()->first <= now_; device_.erase(device_.begin())) {
        scheduler->Completed(device_.begin()->second, now_);
        if (eager_ && device_.begin()->second->class_id == kReader) asks = now_;
      }
      if (reader && now_ >= asks) {
        Add(scheduler, kReader);
        asks = eager_ ? end : now_ + 200us;
      }
      for (Request* request : PullAll(scheduler)) {
        device_.emplace(now_ + 50us, request);
        if (request->class_id == kReader) {
          longest_ = std::max(longest_, now_ - request->arrival);
          read_ += request->bytes;
          continue;
        }
        gaps += now_ - went >= 1ms ? 1 : 0;
        went = now_;
        bytes_ += request->bytes;
        Add(scheduler, request->class_id, request->bytes);
      }
      const TimePoint done = device_.empty() ? end : device_.begin()->first;
      now_ = std::min({last_.wake_at.value_or(end), reader ? asks : end, done, end});
    }
    return gaps;
  }

  std::multimap<TimePoint, Request*> device_;
  uint64_t bytes_ = 0, read_ = 0;
  Duration longest_{0};
  bool eager_ = false;
};

// What would be in time behind all that the device may hold needs no favour.
TEST_F(KeptShortTest, ALooseBoundOfLargeRequestsKeepsNothingShort) {
  for (const Duration bound : {20ms, 2000ms}) {
    SchedulerConfig base;
    base.token_rate = 100 * kMiB;
    Scheduler scheduler(*ApplyProfile("unified", base), now_);
    ClassSpec reader = Class(kReader);
    reader.service.bound = bound;
    for (const ClassSpec& spec : {reader, Class(kLarge)}) scheduler.SetClass(spec, now_);
    for (int i = 0; i < 64; ++i) Add(&scheduler, kLarge, kMiB);
    std::deque<Request*> device;  // serial, 10 ms for each
    const auto step = [&] {
      for (Request* request : PullAll(&scheduler)) device.push_back(request);
      now_ += 10ms;
      scheduler.Completed(device.front(), now_);
      device.pop_front();
    };
    for (int i = 0; i < 20; ++i) step();
    EXPECT_GE(scheduler.in_flight(), 7u);
    Add(&scheduler, kReader, 64 * kKiB);
    for (int i = 0; i < 16; ++i) step();
    EXPECT_EQ(scheduler.in_flight() < 6, bound == 20ms);
  }
}

TEST_F(KeptShortTest, WhoWaitsForTokensGoesInStepsAndLosesNothing) {
  Scheduler scheduler(Strict(), now_);
  for (const ClassId id : {kReader, kWriters}) scheduler.SetClass(Class(id), now_);
  for (int i = 0; i < 64; ++i) Add(&scheduler, kWriters, 64 * kKiB);
  RunTo(&scheduler, now_ + 1s, false);
  bytes_ = 0;
  EXPECT_EQ(RunTo(&scheduler, now_ + 1s, false), 0u);
  EXPECT_NEAR(static_cast<double>(bytes_), 200 * kMiB, kMiB);
  bytes_ = 0;
  const size_t steps = RunTo(&scheduler, now_ + 1s, true);
  EXPECT_GT(steps, 400u);
  EXPECT_LE(steps, 500u);
  EXPECT_NEAR(static_cast<double>(bytes_), (200 - 5000.0 / 256) * kMiB, 2 * kMiB);
  EXPECT_LT(longest_, 2ms);
}

// Goal: many readers, each light, do not lock out one who writes large pieces one by one: it gets
// as much of the device's time as they do. In the readers' class and in another.
TEST_F(KeptShortTest, ManyLightReadersDoNotLockAWriterOut) {
  for (const ClassId writers : {kReader, kWriters}) {
    SchedulerConfig base;
    base.token_rate = 200 * kMiB;
    Scheduler scheduler(*ApplyProfile("unified", base), now_);
    for (const ClassId id : {kReader, kWriters}) scheduler.SetClass(Class(id), now_);
    const auto ask = [&](uint64_t opener, ClassId id, uint64_t bytes) {
      Add(&scheduler, id, bytes, {.flow = {opener < 1000 ? opener % 4 : opener, opener}});
    };
    for (uint64_t i = 0; i < 40; ++i) ask(i, kReader, 4 * kKiB);
    ask(1000, writers, kMiB);
    // One request after the other: 100 us, and a millisecond for a MiB.
    std::deque<Request*> on_device;
    Duration written{0}, served{0};
    const TimePoint end = now_ + 2s;
    while (now_ < end) {
      for (Request* request : PullAll(&scheduler)) on_device.push_back(request);
      ASSERT_FALSE(on_device.empty());
      Request* request = on_device.front();
      on_device.pop_front();
      const Duration took = 100us + 900us * static_cast<int64_t>(request->bytes / kMiB);
      now_ += took;
      served += took;
      if (request->bytes == kMiB) written += took;
      scheduler.Completed(request, now_);
      ask(request->flow.opener, request->class_id, request->bytes);
    }
    EXPECT_GT(static_cast<double>(written.count()) / static_cast<double>(served.count()), 0.15)
        << "class " << writers.value;
    while (!on_device.empty() || scheduler.queued() > 0) {
      for (Request* request : PullAll(&scheduler)) on_device.push_back(request);
      scheduler.Completed(on_device.front(), now_);
      on_device.pop_front();
    }
  }
}

TEST_F(KeptShortTest, AReaderDoesNotWaitForTheTokensOfALargeHead) {
  Scheduler scheduler(Strict(100 * kMiB), now_);
  for (const ClassId id : {kReader, kWriters, kLarge}) scheduler.SetClass(Class(id), now_);
  for (int i = 0; i < 64; ++i) Add(&scheduler, kWriters, 64 * kKiB);
  for (int i = 0; i < 16; ++i) Add(&scheduler, kLarge, kMiB);
  RunTo(&scheduler, now_ + 1s, true);
  longest_ = {};
  bytes_ = 0;
  RunTo(&scheduler, now_ + 1s, true);
  EXPECT_LT(longest_, 300us);
  EXPECT_NEAR(static_cast<double>(bytes_), (100 - 5000.0 / 256) * kMiB, 2 * kMiB);
}

TEST_F(KeptShortTest, AReaderThatPassesALargeHeadGetsNoMoreThanItsShare) {
  Scheduler scheduler(Strict(20 * kMiB), now_);
  for (const ClassId id : {kReader, kLarge}) scheduler.SetClass(Class(id), now_);
  for (int i = 0; i < 16; ++i) Add(&scheduler, kLarge, kMiB);
  eager_ = true;
  RunTo(&scheduler, now_ + 1s, true);
  bytes_ = read_ = 0;
  RunTo(&scheduler, now_ + 10s, true);
  EXPECT_NEAR(static_cast<double>(bytes_), 100 * kMiB, 2 * kMiB);
  EXPECT_NEAR(static_cast<double>(read_), 100 * kMiB, 2 * kMiB);
}

TEST_F(KeptShortTest, NobodyWaitsForBackgroundWork) {
  SchedulerConfig config = Strict();
  config.gate = GateKind::kConserving;
  Scheduler scheduler(config, now_);
  for (const ClassId id : {kSystemCompaction, kReader, kWriters}) {
    scheduler.SetClass(Class(id), now_);
  }
  for (int i = 0; i < 4; ++i) Add(&scheduler, kWriters, kMiB);
  ASSERT_EQ(PullAll(&scheduler).size(), 4u);
  Add(&scheduler, kSystemCompaction, 64 * kKiB);
  EXPECT_FALSE(scheduler.Advise(now_).landing_frees);
  Add(&scheduler, kReader);
  EXPECT_TRUE(scheduler.Advise(now_).landing_frees);
}

// Windows of clients follow it: a disk with a head needs much at a time.
TEST_F(KeptShortTest, RequestsSayThatTheDeviceWasKeptShortUnlessReadsAreFar) {
  SchedulerConfig config = Strict();
  config.gate = GateKind::kConserving;
  for (const bool far : {false, true}) {
    Scheduler scheduler(config, now_);
    for (const ClassId id : {kReader, kWriters}) scheduler.SetClass(Class(id), now_);
    const auto start = [&](ClassId id, uint64_t bytes) {
      Add(&scheduler, id, bytes);
      return scheduler.Pull(now_).request;
    };
    for (int i = 0; i < 20; ++i) {  // so that the device is known
      Request* const read = start(kReader, (i % 2 + 1) * 4 * kKiB);
      now_ += far ? 9ms : 100us;
      scheduler.Completed(read, now_);
    }
    Request* const before = start(kWriters, kMiB);
    EXPECT_FALSE(before->kept_short);
    Request* const read = start(kReader, 4 * kKiB);
    EXPECT_EQ(read->kept_short, !far);
    now_ += far ? 9ms : 100us;
    scheduler.Completed(read, now_);
    scheduler.Completed(before, now_);
    Request* const beside = start(kWriters, kMiB);
    ASSERT_NE(beside, nullptr);
    EXPECT_EQ(beside->kept_short, !far);
    scheduler.Completed(beside, now_);
    now_ += 2s;
    Request* const after = start(kWriters, kMiB);
    EXPECT_FALSE(after->kept_short);
    scheduler.Completed(after, now_);
  }
}

TEST_F(KeptShortTest, WhatHasLandedNeedsNoSlotAndIsMeasuredButNotServed) {
  SchedulerConfig config = Strict();
  config.gate = GateKind::kConserving;
  config.depth = 1;
  Scheduler scheduler(config, now_);
  scheduler.SetClass(Class(kWriters), now_);
  Add(&scheduler, kWriters, 64 * kKiB);
  Add(&scheduler, kWriters, 64 * kKiB);
  const std::vector<Request*> first = PullAll(&scheduler);
  ASSERT_EQ(first.size(), 1u);
  now_ += 1ms;
  scheduler.Landed(first[0], now_);
  EXPECT_EQ(scheduler.in_flight(), 0u);
  EXPECT_EQ(first[0]->device_time, 1ms);
  const std::vector<Request*> second = PullAll(&scheduler);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(ServedOps(&scheduler), 0u);
  now_ += 9ms;
  scheduler.Completed(first[0], now_);
  EXPECT_EQ(first[0]->device_time, 1ms);
  EXPECT_EQ(scheduler.in_flight(), 1u);
  EXPECT_EQ(ServedOps(&scheduler), 1u);
  scheduler.Completed(second[0], now_);
  EXPECT_EQ(scheduler.in_flight(), 0u);
}

TEST_F(KeptShortTest, TwoMillisecondsOfWritesMayLandAheadOfTheirCommit) {
  SchedulerConfig config = Strict(0);
  config.gate = GateKind::kConserving;
  Scheduler scheduler(config, now_);
  for (const ClassId id : {kReader, kWriters}) scheduler.SetClass(Class(id), now_);
  const auto start = [&] {
    Add(&scheduler, kWriters, 64 * kKiB);
    return scheduler.Pull(now_).request;
  };
  for (int i = 0; i < 10; ++i) {  // so that the device is known
    Request* const write = start();
    now_ += 1ms;
    scheduler.Completed(write, now_);
  }
  Request* const first = start();
  EXPECT_FALSE(scheduler.Advise(now_).landing_frees);
  Add(&scheduler, kReader);
  ASSERT_NE(Serve(&scheduler), nullptr);
  EXPECT_TRUE(scheduler.Advise(now_).landing_frees);
  scheduler.Landed(first, now_);
  Request* const second = start();
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(scheduler.Advise(now_).landing_frees);
  scheduler.Landed(second, now_);
  EXPECT_FALSE(scheduler.Advise(now_).landing_frees);
  scheduler.Completed(first, now_);
  EXPECT_TRUE(scheduler.Advise(now_).landing_frees);
}

TEST_F(KeptShortTest, AClassMayBeRemovedWhileItsDataHasLanded) {
  SchedulerConfig config = Strict();
  config.depth = 1;
  Scheduler scheduler(config, now_);
  scheduler.SetClass(Class(kWriters), now_);
  Request* request = Add(&scheduler, kWriters, 64 * kKiB);
  ASSERT_EQ(PullAll(&scheduler).size(), 1u);
  scheduler.Landed(request, now_);
  scheduler.RemoveClass(kWriters, now_);
  scheduler.Completed(request, now_);
  Add(&scheduler, kBestEffort, 64 * kKiB);
  EXPECT_NE(Serve(&scheduler), nullptr);
}

}  // namespace
}  // namespace weir::osd::qos
