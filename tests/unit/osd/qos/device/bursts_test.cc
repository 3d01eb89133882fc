#include "osd/qos/device/bursts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "common/disk/model/hdd.h"
#include "tests/unit/osd/qos/scheduler_fixture.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;

constexpr ClassId kReader{16}, kWriters{17};
constexpr uint64_t kMiB = 1 << 20;

class BurstsTest : public ::testing::Test {
 protected:
  // So many reads, 9 ms each, the reader being there again after 1 ms.
  void Read(int reads) {
    for (int i = 0; i < reads; ++i) {
      bursts_.ReadSubmitted(now_);
      now_ += 9ms;
      bursts_.ReadDone(now_);
      now_ += 1ms;
    }
  }
  void Give(uint64_t mib) {
    for (; mib > 0; --mib) EXPECT_TRUE(bursts_.Submitted(kMiB, now_));
  }
  void End(uint64_t mib) {
    for (; mib > 0; --mib) bursts_.Done();
  }

  static constexpr uint64_t kMibOfBurst = Bursts::kBytes / kMiB;
  TimePoint now_{1'000'000'000};
  Bursts bursts_;
};

TEST_F(BurstsTest, NobodyIsHeldBackWithoutAReader) {
  EXPECT_FALSE(bursts_.Submitted(64 * kMiB, now_));
  EXPECT_FALSE(bursts_.Keeps(now_));
  EXPECT_FALSE(bursts_.Acts(now_));
}

TEST_F(BurstsTest, TheReaderHasTheDiskFromTheEndOfABurstForItsReads) {
  bursts_.ReadSubmitted(now_);
  Give(kMibOfBurst - 1);
  EXPECT_FALSE(bursts_.Keeps(now_));
  Give(1);
  EXPECT_TRUE(bursts_.Keeps(now_)) << "it is all there";
  bursts_.ReadDone(now_);
  Read(2 * Bursts::kReads);
  EXPECT_TRUE(bursts_.Keeps(now_)) << "reads during the burst do not count";
  End(kMibOfBurst);
  Read(Bursts::kReads - 1);
  EXPECT_TRUE(bursts_.Keeps(now_));
  Read(1);
  EXPECT_TRUE(bursts_.Keeps(now_)) << "what is given now would be begun before the next read";
  bursts_.ReadSubmitted(now_);
  EXPECT_FALSE(bursts_.Keeps(now_));
  Give(kMibOfBurst);
  EXPECT_TRUE(bursts_.Keeps(now_));
}

TEST_F(BurstsTest, NobodyWaitsForAReaderWhoStops) {
  bursts_.ReadSubmitted(now_);
  Give(kMibOfBurst);
  bursts_.ReadDone(now_);
  EXPECT_EQ(bursts_.KeptUntil(), now_ + Bursts::kPatience);
  now_ += Bursts::kPatience;
  EXPECT_FALSE(bursts_.Keeps(now_));
  EXPECT_FALSE(bursts_.Acts(now_));
  EXPECT_FALSE(bursts_.Submitted(64 * kMiB, now_));
  bursts_.ReadSubmitted(now_);
  EXPECT_FALSE(bursts_.Keeps(now_)) << "what went meanwhile is no burst";
}

TEST_F(BurstsTest, NobodyWaitsForABurstThatDoesNotEnd) {
  bursts_.ReadSubmitted(now_);
  Give(kMibOfBurst);
  EXPECT_EQ(bursts_.KeptUntil(), now_ + Bursts::kPauseMax);
  now_ += Bursts::kPauseMax;
  Give(1);
  EXPECT_FALSE(bursts_.Keeps(now_)) << "it is the first of the next";
}

TEST_F(BurstsTest, WhatIsOwedMeanwhileIsNoPartOfIt) {
  bursts_.ReadSubmitted(now_);
  Give(kMibOfBurst);
  EXPECT_FALSE(bursts_.Submitted(kMiB, now_));
}

TEST_F(BurstsTest, WhatHasLandedWaitsForTheRestOfItsBurstAndNoLonger) {
  bursts_.ReadSubmitted(now_);
  Give(2);
  bursts_.Lands();
  bursts_.Lands();
  bursts_.Landed();
  EXPECT_EQ(bursts_.Patience(false), Bursts::kGathers);
  bursts_.Landed();
  EXPECT_EQ(bursts_.Patience(true), Bursts::kGathers);
  EXPECT_EQ(bursts_.Patience(false), 0ms) << "nobody else is there";
  Give(kMibOfBurst - 2);
  bursts_.Lands();
  EXPECT_EQ(bursts_.Patience(true), Bursts::kGathers);
  bursts_.Landed();
  EXPECT_EQ(bursts_.Patience(true), 0ms);
}

// A scheduler over a disk with a cache, below a store that commits in groups: data, flush, journal,
// flush. The reader's file and the writers' lie apart.
class BurstsOnDiskTest : public testing::SchedulerFixture {
 protected:
  BurstsOnDiskTest() : scheduler_(Config(), now_) {
    model::HddModel model = model::HddModelOf("sata-7200");
    model.capacity = 4ull << 30;
    disk_ = model::MakeHdd(&events_, model, 1, model.capacity, Prng(1));
    for (const ClassId id : {kReader, kWriters}) {
      ClassSpec spec;
      spec.id = id;
      spec.name = "class" + std::to_string(id.value);
      scheduler_.SetClass(spec, now_);
    }
  }
  static SchedulerConfig Config() {
    SchedulerConfig base;
    base.token_rate = 100 * kMiB;
    return *ApplyProfile("unified", base);
  }

  void Write(int writers) {
    for (int i = 0; i < writers; ++i) AddAt(kWriters, 64 << 10, OpKind::kWrite);
    Pump();
  }
  void RunFor(Duration time) { events_.RunTo(events_.now() + time); }
  // What the writers got meanwhile, in MiB/s, and the reader's latencies.
  double Measure(Duration time) {
    written_ = 0;
    latencies_.clear();
    RunFor(time);
    std::sort(latencies_.begin(), latencies_.end());
    return static_cast<double>(written_) / kMiB / ToSeconds(time);
  }
  [[nodiscard]] double Percentile(double part) const {
    return ToSeconds(
        latencies_[static_cast<size_t>(part * static_cast<double>(latencies_.size()))]);
  }
  void Ask() {
    AddAt(kReader, 4096, OpKind::kRead);
    Pump();
  }

  bool reads_ = true;

 private:
  struct Landed {
    Request* request;
    TimePoint commit_by;
  };

  void AddAt(ClassId id, uint64_t bytes, OpKind op) {
    now_ = events_.now();
    Request* request = &requests_.emplace_back();
    request->class_id = id;
    request->bytes = bytes;
    request->op = op;
    scheduler_.Enqueue(request, now_);
  }
  void Pump() {
    now_ = events_.now();
    for (Request* request : PullAll(&scheduler_)) {
      if (request->op == OpKind::kRead) {
        const uint64_t at = (256 << 20) + prng_.Uniform(0, (128 << 20) / 4096 - 1) * 4096;
        disk_->Submit({model::DiskIo::Kind::kRead, at, 4096},
                      [this, request](Duration) { Done(request); });
      } else {
        sweep_ = sweep_ < 1024 * kMiB ? sweep_ + request->bytes : 640 * kMiB;
        disk_->Submit({model::DiskIo::Kind::kWrite, sweep_, request->bytes},
                      [this, request](Duration) { Land(request); });
      }
    }
    if (last_.wake_at) events_.At(*last_.wake_at, [this] { Pump(); });
  }
  void Land(Request* request) {
    now_ = events_.now();
    Duration patience{0};
    if (scheduler_.Advise(now_).landing_frees) {
      patience = scheduler_.Landed(request, now_).value_or(patience);
    }
    landed_.push_back({request, now_ + patience});
    events_.At(now_ + patience, [this] { Commit(); });
    Pump();
  }
  void Commit() {
    const auto due = [this](const Landed& one) { return one.commit_by <= events_.now(); };
    if (committing_ || !std::any_of(landed_.begin(), landed_.end(), due)) return;
    committing_ = true;
    disk_->Submit(
        {model::DiskIo::Kind::kFlush}, [this, group = std::exchange(landed_, {})](Duration) {
          journal_ += 8192;
          disk_->Submit({model::DiskIo::Kind::kWrite, journal_, 8192}, [this, group](Duration) {
            disk_->Submit({model::DiskIo::Kind::kFlush}, [this, group](Duration) {
              committing_ = false;
              for (const Landed& one : group) Done(one.request);
              Commit();
            });
          });
        });
  }
  void Done(Request* request) {
    now_ = events_.now();
    scheduler_.Completed(request, now_);
    if (request->op == OpKind::kRead) {
      latencies_.push_back(now_ - request->arrival);
      if (reads_) events_.After(200us, [this] { Ask(); });
    } else {
      written_ += request->bytes;
      AddAt(kWriters, request->bytes, OpKind::kWrite);
    }
    Pump();
  }

  model::EventQueue events_;
  std::unique_ptr<model::DiskModel> disk_;
  Scheduler scheduler_;
  Prng prng_{2};
  uint64_t sweep_ = 640 * kMiB, journal_ = 16 * kMiB;
  std::vector<Landed> landed_;
  bool committing_ = false;
  uint64_t written_ = 0;
  std::vector<Duration> latencies_;
};

TEST_F(BurstsOnDiskTest, WritersKeepAQuarterBesideAReaderWhoWaitsTwiceAsLong) {
  Ask();
  RunFor(5s);
  Measure(20s);
  const double p50 = Percentile(.5), p99 = Percentile(.99);
  Write(320);
  RunFor(5s);
  const double beside = Measure(30s);
  EXPECT_LT(Percentile(.5), 2 * p50);
  EXPECT_LT(Percentile(.99), 2.3 * p99);
  reads_ = false;
  RunFor(100ms);
  const double alone = Measure(20s);
  EXPECT_GT(alone, 150);
  EXPECT_GT(beside, alone / 4);
}

}  // namespace
}  // namespace weir::osd::qos
