// What a scheduler and its governor hold back while a class with a latency bound reads and
// processors are short: neither that class, nor what is light, nor what is owed.
#include <algorithm>
#include <map>

#include "osd/qos/control/bulk_governor.h"
#include "tests/unit/osd/qos/scheduler_fixture.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kReader{16}, kWriters{17}, kLarge{18}, kSmall{19};
constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
// What the device needs for any request; all of them are served side by side.
constexpr Duration kServes = 50us, kPerMiB = 20ms;
Duration TimeOf(const Request& request) {
  return kServes + kPerMiB * static_cast<int64_t>(request.bytes) / static_cast<int64_t>(kMiB);
}

// A bounded reader that asks whenever it has its answer, writers of 64 KiB and of 1 MiB that always
// have something waiting, and processors that somebody waits for nine tenths of the time.
class BulkCapTest : public testing::SchedulerFixture {
 protected:
  static SchedulerConfig Unified() {
    SchedulerConfig base;
    base.token_rate = 400 * kMiB;
    return *ApplyProfile("unified", base);
  }
  static ClassSpec Class(ClassId id) {
    ClassSpec spec;
    spec.id = id;
    spec.name = "class" + std::to_string(id.value);
    return spec;
  }
  void Start(const SchedulerConfig& config) {
    scheduler_ = std::make_unique<Scheduler>(config, now_);
    governor_ = {};
    governor_.Choose(config.processor_pressure / 100.0);
    ClassSpec reader = Class(kReader);
    reader.service.bound = 5ms;
    reader.service.max_pending = 0;
    scheduler_->SetClass(reader, now_);
    for (const ClassId id : {kWriters, kLarge}) scheduler_->SetClass(Class(id), now_);
    for (int i = 0; i < 64; ++i) Add(scheduler_.get(), kWriters, write_bytes_);
    for (int i = 0; i < 16; ++i) Add(scheduler_.get(), kLarge, kMiB);
  }
  void Govern() {
    governor_.Guarded(scheduler_->guarded_until(), now_);
    scheduler_->SetBulkCap(governor_.rate(), now_);
  }
  Request* Read(ClassId id) {
    Request* request = Add(scheduler_.get(), id, read_bytes_);
    request->op = OpKind::kRead;
    return request;
  }
  void RunFor(Duration time, std::initializer_list<ClassId> readers = {kReader}) {
    const TimePoint end = now_ + time;
    for (const ClassId id : readers) Read(id);
    while (now_ < end) {
      for (; !device_.empty() && device_.begin()->first <= now_; device_.erase(device_.begin())) {
        Request* done = device_.begin()->second;
        scheduler_->Completed(done, now_);
        if (Reads(done->class_id)) {
          ++reads_;
          Read(done->class_id);
        } else {
          served_[done->class_id] += done->bytes;
          Add(scheduler_.get(), done->class_id, done->bytes);
        }
      }
      if (now_ >= governor_.LookAt()) {
        waited_ += (now_ - looked_) / 10 * 9;
        looked_ = now_;
        governor_.Look(waited_, scheduler_->State(now_).bulk_taken, now_);
      }
      Govern();
      for (Request* request : PullAll(scheduler_.get())) {
        device_.emplace(now_ + TimeOf(*request), request);
        if (Reads(request->class_id)) longest_ = std::max(longest_, now_ - request->arrival);
      }
      now_ = std::min({last_.wake_at.value_or(end), governor_.LookAt(), end,
                       device_.empty() ? end : device_.begin()->first});
    }
  }
  static bool Reads(ClassId id) { return id == kReader || id == kSmall; }
  double Rate(ClassId id) { return static_cast<double>(served_[id]) / kMiB; }

  std::unique_ptr<Scheduler> scheduler_;
  BulkGovernor governor_;
  std::multimap<TimePoint, Request*> device_;
  std::map<ClassId, uint64_t> served_;
  Duration waited_{0};
  TimePoint looked_;
  uint64_t read_bytes_ = 4 * kKiB;
  uint64_t write_bytes_ = 64 * kKiB;
  uint64_t reads_ = 0;
  Duration longest_{0};
};

TEST_F(BulkCapTest, OthersAreHeldAndShareByWeight) {
  Start(Unified());
  RunFor(300ms);
  const double before = Rate(kWriters) + Rate(kLarge);
  RunFor(700ms, {});
  ASSERT_GT(scheduler_->State(now_).bulk_cap, 0u);
  served_.clear();
  RunFor(1s, {});
  EXPECT_LT(Rate(kWriters) + Rate(kLarge), before / 0.3 / 8);
  EXPECT_NEAR(Rate(kWriters), Rate(kLarge), 1) << "MiB: the largest request";
}

// Goal: the reader is not held to the share that fair queueing gives it beside what is paced, and
// has run up no debt by the time that the others go again.
TEST_F(BulkCapTest, TheReaderGoesAtOnceAndOwesNothingLater) {
  SchedulerConfig unpaced = Unified();
  unpaced.processor_pressure = SchedulerConfig::kAnyPressure;
  Start(unpaced);
  RunFor(1s);
  longest_ = {};
  RunFor(1s, {});
  const Duration before = longest_;
  governor_.Choose(Unified().processor_pressure / 100.0);
  RunFor(1s, {});
  ASSERT_GT(scheduler_->State(now_).bulk_cap, 0u);
  reads_ = 0;
  longest_ = {};
  RunFor(1s, {});
  EXPECT_GT(reads_, 7'000u);
  EXPECT_LE(longest_, kServes);
  governor_.Choose(1);
  Govern();
  EXPECT_EQ(scheduler_->State(now_).bulk_cap, 0u);
  longest_ = {};
  RunFor(1s, {});
  EXPECT_LE(longest_, 2 * before);
}

TEST_F(BulkCapTest, SmallReadersWithoutABoundAreNotHeldEither) {
  Start(Unified());
  scheduler_->SetClass(Class(kSmall), now_);
  RunFor(1s, {kReader, kSmall});
  longest_ = {};
  RunFor(1s, {});
  EXPECT_LE(longest_, 2 * kServes);
}

// As large as what is paced, so that fair queueing sees no small one pass a large one.
TEST_F(BulkCapTest, NeitherAreReadsAsLargeAsTheWritesBesideThem) {
  read_bytes_ = write_bytes_ = 32 * kKiB;
  Start(Unified());
  RunFor(1s);
  longest_ = {};
  RunFor(1s, {});
  EXPECT_LE(longest_, kServes);
}

TEST_F(BulkCapTest, WhatIsOwedGoesAllTheSame) {
  Start(Unified());
  ClassSpec promised = Class(kLarge);
  promised.reservation = Reservation{.bytes_per_s = 80 * kMiB};
  scheduler_->SetClass(promised, now_);
  RunFor(1s);
  ASSERT_GT(scheduler_->State(now_).bulk_cap, 0u);
  ASSERT_LT(scheduler_->State(now_).bulk_cap, 80 * kMiB);
  served_.clear();
  RunFor(1s, {});
  EXPECT_GE(Rate(kLarge), 79);
  EXPECT_GT(Rate(kWriters), 1) << "what is owed took their pace";
}

// It waits for its own requests, and at its limit for nobody.
TEST_F(BulkCapTest, NobodyIsHeldForABoundOfOneWhoKeepsMuchUnderWay) {
  read_bytes_ = 64 * kKiB;
  Start(Unified());
  RunFor(1s, {kReader, kReader, kReader, kReader});
  EXPECT_EQ(scheduler_->State(now_).bulk_cap, 0u);
}

TEST_F(BulkCapTest, NobodyIsHeldWithoutABound) {
  Start(Unified());
  scheduler_->SetClass(Class(kReader), now_);
  RunFor(1s);
  EXPECT_EQ(governor_.LookAt(), TimePoint::Max());
  EXPECT_EQ(scheduler_->State(now_).bulk_cap, 0u);
}

TEST_F(BulkCapTest, OnlyADeviceThatAdaptsIsGuarded) {
  for (const char* profile : {"noqos", "odis", "dsfq-total"}) {
    Start(*ApplyProfile(profile, Unified()));
    RunFor(200ms);
    EXPECT_EQ(scheduler_->State(now_).bulk_cap, 0u) << profile;
    EXPECT_EQ(governor_.LookAt(), TimePoint::Max()) << profile;
    RunFor(1s, {});
    device_.clear();
  }
}

}  // namespace
}  // namespace weir::osd::qos
