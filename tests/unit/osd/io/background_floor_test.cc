// Goal: purge gets its floor beside hogs and no more than that of what others were promised.
// Method: the scheduler alone on a disk of 100 MiB/s, all classes backlogged.
#include "osd/io/background_floor.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>

#include "osd/qos/scheduler.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;
constexpr ClassId kGold{16};
constexpr ClassId kHog{17};

ClassSpec Class(ClassId id, const std::string& name, double weight = 1) {
  ClassSpec spec;
  spec.id = id;
  spec.name = name;
  spec.weight = weight;
  return spec;
}

TEST(BackgroundFloorTest, IsAPartOfTheDiskUntilSomebodyReservesAnother) {
  EXPECT_EQ(DefaultFloor(kSystemCompaction, 160 * kMiB), 10 * kMiB);
  EXPECT_EQ(DefaultFloor(kSystemCompaction, 0), 4 * kMiB);
  EXPECT_EQ(BackgroundFloor(Class(kSystemPurge, "system.purge"), 640 * kMiB), 10 * kMiB);
  EXPECT_EQ(DefaultFloor(kSystemScrub, 0), kMiB);
  ClassSpec purge = Class(kSystemPurge, "system.purge");
  purge.reservation.emplace().bytes_per_s = 3 * kMiB;
  EXPECT_EQ(BackgroundFloor(purge, 640 * kMiB), 3 * kMiB);
  PromiseFloor(3 * kMiB, &purge);
  EXPECT_EQ(purge.reservation->scope, ReservationScope::kCluster) << "his, untouched";
}

class PurgeBesideHogsTest : public ::testing::Test {
 protected:
  static SchedulerConfig Config() {
    SchedulerConfig config;
    config.token_rate = 100 * kMiB;
    config.depth = 4;
    return config;
  }
  void Backlog(ClassId id, uint64_t bytes) {
    while (waiting_[id] < 8) {
      auto request = std::make_unique<qos::Request>();
      request->class_id = id;
      request->bytes = bytes;
      scheduler_.Enqueue(request.get(), now_);
      requests_.push_back(std::move(request));
      ++waiting_[id];
    }
  }
  // Bytes per second of each class over so long.
  std::map<ClassId, double> Run(Duration time) {
    std::map<ClassId, double> served;
    const TimePoint end = now_ + time;
    while (now_ < end) {
      Backlog(kGold, 64 << 10);
      Backlog(kHog, 512 << 10);
      Backlog(kSystemPurge, 64 << 10);
      for (auto next = scheduler_.Pull(now_); next.request != nullptr;
           next = scheduler_.Pull(now_)) {
        on_disk_.push_back(next.request);
      }
      qos::Request* done = on_disk_.front();
      on_disk_.pop_front();
      now_ += FromSeconds(static_cast<double>(done->bytes) / (100.0 * kMiB));
      scheduler_.Completed(done, now_);
      --waiting_[done->class_id];
      served[done->class_id] += static_cast<double>(done->bytes) / ToSeconds(time);
      if (now_ >= scheduler_.NextTick()) scheduler_.Tick(now_);
    }
    return served;
  }
  void Install(ClassSpec spec) { scheduler_.SetClass(spec, now_); }

  TimePoint now_{};
  std::map<ClassId, int> waiting_;
  std::deque<qos::Request*> on_disk_;
  std::deque<std::unique_ptr<qos::Request>> requests_;
  qos::Scheduler scheduler_{Config(), now_};
};

TEST_F(PurgeBesideHogsTest, GetsItsFloorAndLeavesThePromised) {
  ClassSpec gold = Class(kGold, "gold", 0.001);
  PromiseFloor(60 * kMiB, &gold);
  Install(gold);
  Install(Class(kHog, "hog", 1000));
  ClassSpec purge = Class(kSystemPurge, "system.purge", 0.001);
  PromiseFloor(BackgroundFloor(purge, 320 * kMiB), &purge);
  Install(purge);
  Run(5s);
  const auto served = Run(20s);
  EXPECT_NEAR(served.at(kSystemPurge), 5.0 * kMiB, 0.25 * kMiB);
  EXPECT_NEAR(served.at(kGold), 60.0 * kMiB, 1.2 * kMiB);
  EXPECT_NEAR(served.at(kHog), 35.0 * kMiB, 1.5 * kMiB);
}

}  // namespace
}  // namespace weir::osd
