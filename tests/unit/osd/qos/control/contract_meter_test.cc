// Bounds that are kept or missed, on a scheduler by hand.
#include "osd/qos/control/contract_meter.h"

#include <gtest/gtest.h>

#include <list>

#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Spec;

constexpr ClassId kGold{16};
constexpr ClassId kHog{17};

ClassSpec Bounded(Duration bound, uint32_t max_pending) {
  ClassSpec spec = Spec(kGold);
  spec.service.bound = bound;
  spec.service.max_pending = max_pending;
  return spec;
}

class ContractMeterTest : public ::testing::Test {
 protected:
  ContractMeterTest() {
    SchedulerConfig config = *ApplyProfile("noqos", {});
    config.token_rate = 60 * kMiB;
    config.depth = 1000;
    scheduler_ = std::make_unique<Scheduler>(config, now_);
  }
  Request* Send() {
    Request* request = &requests_.emplace_back();
    request->class_id = kGold;
    request->bytes = 4 * kKiB;
    scheduler_->Enqueue(request, now_);
    while (scheduler_->Pull(now_).request != nullptr) {
    }
    return request;
  }
  void Advance(Duration time) {
    now_ += time;
    while (scheduler_->NextTick() <= now_) scheduler_->Tick(scheduler_->NextTick());
  }
  ClassCounters Gold() { return scheduler_->Counters(now_).back(); }

  TimePoint now_;
  std::unique_ptr<Scheduler> scheduler_;
  std::list<Request> requests_;
};

TEST_F(ContractMeterTest, AMissIsMeasuredFromAmongTheFirstMaxPending) {
  scheduler_->SetClass(Bounded(10ms, 0), now_);
  Request* first = Send();
  Request* second = Send();  // its clock starts when the first is done
  Advance(8ms);
  scheduler_->Completed(first, now_);
  Advance(8ms);
  scheduler_->Completed(second, now_);
  EXPECT_EQ(Gold().deadline_misses, 0u);
  Request* third = Send();
  Advance(11ms);
  scheduler_->Completed(third, now_);
  EXPECT_EQ(Gold().deadline_misses, 1u);
}

TEST_F(ContractMeterTest, ASecondIsBrokenWhenMoreThanTheRestOfThePercentageMisses) {
  scheduler_->SetClass(Bounded(10ms, 16), now_);
  const auto second = [&](int good, int late) {
    std::vector<Request*> sent;
    for (int i = 0; i < good; ++i) scheduler_->Completed(Send(), now_ + 1ms);
    for (int i = 0; i < late; ++i) {
      Request* request = Send();
      Advance(11ms);
      scheduler_->Completed(request, now_);
    }
    const TimePoint end{(now_.ns / 1'000'000'000 + 1) * 1'000'000'000};
    Advance(end - now_);
  };
  second(95, 5);
  EXPECT_EQ(Gold().violation_seconds, 0u);
  second(90, 6);
  EXPECT_EQ(Gold().violation_seconds, 1u);
  second(0, 1);  // one request is no rate
  EXPECT_EQ(Gold().violation_seconds, 1u);
}

TEST_F(ContractMeterTest, ABoundThatIsLiftedIsNotMissed) {
  scheduler_->SetClass(Bounded(10ms, 0), now_);
  Request* request = Send();
  scheduler_->SetClass(Spec(kGold), now_);
  Advance(50ms);
  scheduler_->Completed(request, now_);
  EXPECT_EQ(Gold().deadline_misses, 0u);
}

TEST_F(ContractMeterTest, AClassIsMeasuredAfterAThousandRequestsUnderThisContract) {
  scheduler_->SetClass(Bounded(10ms, 0), now_);
  for (int i = 0; i < 1000; ++i) {
    Request* request = Send();
    Advance(1ms);
    scheduler_->Completed(request, now_);
  }
  EXPECT_EQ(scheduler_->Measures().measured, std::vector<ClassId>{kGold});
  EXPECT_NEAR(scheduler_->Measures().service_parts.at(94), 0.1, 0.02);
  scheduler_->SetClass(Bounded(20ms, 0), now_);
  EXPECT_TRUE(scheduler_->Measures().measured.empty());
}

SchedulerConfig Unified() {
  SchedulerConfig base;
  base.token_rate = 60 * kMiB;
  base.best_effort_min = 0;
  return *ApplyProfile("unified", base);
}

TEST(BoundAndReservationTest, TheClassIsOwedTheLargerOfTheTwo) {
  for (const bool bytes_larger : {true, false}) {
    Cluster cluster(1, Unified(), 60 * kMiB);
    ClassSpec gold = Bounded(50ms, 16);  // 347 requests of 64 KiB a second: 21.7 MiB/s
    gold.weight = 1e-3;
    gold.reservation = Reservation{.bytes_per_s = (bytes_larger ? 40 : 5) * kMiB};
    cluster.SetClass(gold);
    cluster.SetClass(Spec(kHog));
    Load* one = cluster.Start({.class_id = kGold, .outstanding = 16, .bytes = 64 * kKiB});
    cluster.Start({.class_id = kHog, .outstanding = 64, .bytes = 64 * kKiB});
    cluster.RunTo(10s);
    EXPECT_NEAR(one->MiBps(2s, 10s), bytes_larger ? 40 : 21.7, 1.0) << bytes_larger;
  }
}

TEST(BoundAndReservationTest, LargeRequestsCountAsSeveral) {
  Cluster cluster(1, Unified(), 60 * kMiB);
  ClassSpec gold = Spec(kGold);
  gold.weight = 1e-3;
  gold.reservation = Reservation{.bytes_per_s = 0, .iops = 160};  // 10 MiB/s in units of 64 KiB
  cluster.SetClass(gold);
  cluster.SetClass(Spec(kHog));
  Load* one = cluster.Start({.class_id = kGold, .outstanding = 8, .bytes = 512 * kKiB});
  cluster.Start({.class_id = kHog, .outstanding = 64, .bytes = 64 * kKiB});
  cluster.RunTo(10s);
  EXPECT_NEAR(one->MiBps(2s, 10s), 10, 0.6);
}

TEST(BoundAndReservationTest, BrokenRequestsPerSecondAreViolationsKeptOnesAreNot) {
  for (const double device : {60.0, 2.0}) {
    Cluster cluster(1, Unified(), static_cast<uint64_t>(device * kMiB));
    ClassSpec gold = Spec(kGold);
    gold.reservation = Reservation{.bytes_per_s = 0, .iops = 600};
    cluster.SetClass(gold);
    cluster.SetClass(Spec(kHog));
    cluster.Start({.class_id = kGold, .outstanding = 64, .bytes = 4 * kKiB});
    cluster.Start({.class_id = kHog, .outstanding = 64, .bytes = 64 * kKiB});
    cluster.RunTo(10s);
    const auto counters = cluster.osd().scheduler().Counters(cluster.events().now());
    const uint64_t violations = counters.at(1).violation_seconds;
    if (device > 10) {
      EXPECT_EQ(violations, 0u);
    } else {
      EXPECT_GE(violations, 5u);
    }
  }
}

TEST(VirtualDiskPromiseTest, BehindHtbAShareOfTheDiskIsAPromise) {
  Cluster cluster(1, Unified(), 60 * kMiB);
  ClassSpec gold = Spec(kGold);
  gold.weight = 1e-3;
  gold.disk.type = ClassType::kRentADisk;
  gold.disk.peak = 0.5;
  cluster.SetClass(gold);
  cluster.SetClass(Spec(kHog));
  Load* one = cluster.Start({.class_id = kGold, .outstanding = 16, .bytes = 64 * kKiB});
  cluster.Start({.class_id = kHog, .outstanding = 64, .bytes = 64 * kKiB});
  cluster.RunTo(10s);
  EXPECT_NEAR(one->MiBps(2s, 10s), 30, 1);
}

// Goal: a second is broken when a disk with demand has less of the device's time than it rents,
// and only then. Method: three disks rent 3 x `share`, which fits or does not. The last one asks
// for little, or has a limit that it reaches, and is not wronged where all fits.
std::vector<uint64_t> BrokenSeconds(std::string_view profile, double share, uint64_t limit) {
  SchedulerConfig base;
  base.token_rate = 60 * kMiB;
  base.best_effort_min = 0;
  Cluster cluster(1, *ApplyProfile(profile, base), 60 * kMiB);
  for (uint32_t i = 0; i < 3; ++i) {
    ClassSpec disk = Spec(ClassId(16 + i));
    disk.disk.type = ClassType::kRentADisk;
    disk.disk.peak = share;
    if (i == 2 && limit > 0) disk.limit_bytes_per_s = limit;
    cluster.SetClass(disk);
    const bool idle = i == 2 && limit == 0;
    cluster.Start({.class_id = disk.id,
                   .outstanding = idle ? 1 : 16,
                   .bytes = 64 * kKiB,
                   .think = idle ? Duration(50ms) : Duration(0)});
  }
  cluster.RunTo(10s);
  std::vector<uint64_t> broken;
  for (const auto& one : cluster.osd().scheduler().Counters(cluster.events().now())) {
    if (one.id.value >= 16) broken.push_back(one.violation_seconds);
  }
  return broken;
}

TEST(VirtualDiskPromiseTest, ASecondWithLessTimeThanRentedIsBroken) {
  for (const std::string_view profile : {"unified", "vd"}) {
    const std::vector<uint64_t> none{0, 0, 0};
    EXPECT_EQ(BrokenSeconds(profile, 0.33, 0), none) << profile;
    EXPECT_EQ(BrokenSeconds(profile, 0.33, kMiB), none) << profile << ": held by its limit";
    const std::vector<uint64_t> broken = BrokenSeconds(profile, 0.6, 0);
    EXPECT_GE(broken[0], 8u) << profile;
    EXPECT_GE(broken[1], 8u) << profile;
  }
}

}  // namespace
}  // namespace weir::osd::qos
