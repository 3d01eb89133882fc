// Promises on a disk that is slower than its token rate: depth auto, a disk that serves in order of
// arrival, and classes whose requests all fit on it at once, so that the order in which they are
// decided is not the order in which they are served.
#include <optional>

#include "tests/unit/osd/qos/virtual_device.h"
#include "tools/sim/devices/simple.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Reserved;
using testing::Spec;

// A class that keeps `outstanding` requests under way, or asks for `pace`.
struct Writer {
  uint64_t promised = 0;  // MiB/s
  int outstanding = 16;
  uint64_t bytes = 64 * kKiB;
  double pace = 0;
  uint64_t iops = 0;
};

class SlowDiskTest : public ::testing::Test {
 protected:
  static SchedulerConfig Config(uint64_t token_rate, GateKind gate, uint32_t depth) {
    SchedulerConfig base;
    base.token_rate = token_rate * kMiB;
    SchedulerConfig config = *ApplyProfile("unified", base);
    config.gate = gate;
    config.depth = depth;
    return config;
  }
  void Start(const std::vector<Writer>& writers, uint64_t token_rate = 40,
             GateKind gate = GateKind::kStrict, uint32_t depth = 0,
             const sim::DeviceFactory& device = sim::Flat(30 * kMiB)) {
    cluster_.emplace(1);
    cluster_->AddOsd(Config(token_rate, gate, depth), device);
    loads_.clear();
    uint32_t id = 16;
    for (const Writer& writer : writers) {
      ClassSpec spec = Spec(ClassId(id));
      if (writer.promised > 0 || writer.iops > 0) {
        spec = Reserved(ClassId(id), writer.promised * kMiB);
        spec.reservation->iops = writer.iops;
      }
      cluster_->SetClass(spec);
      loads_.push_back(cluster_->Start({.class_id = ClassId(id++),
                                        .outstanding = writer.outstanding,
                                        .bytes = writer.bytes,
                                        .pace = writer.pace}));
    }
  }
  double Sum(Duration from, Duration to) const {
    double sum = 0;
    for (const Load* load : loads_) sum += load->MiBps(from, to);
    return sum;
  }

  DiskEstimate::View Estimate() {
    return cluster_->osd().scheduler().State(cluster_->events().now()).disk;
  }

  std::optional<Cluster> cluster_;
  std::vector<Load*> loads_;
};

TEST_F(SlowDiskTest, APromiseThatTheDiskCanKeepIsKept) {
  for (const uint64_t token_rate : {40, 60}) {
    for (const GateKind gate : {GateKind::kStrict, GateKind::kConserving}) {
      Start({{.promised = 5}, {.promised = 20}}, token_rate, gate);
      cluster_->RunTo(20s);
      EXPECT_NEAR(loads_[1]->MiBps(1s, 20s), 20, 0.4);
      EXPECT_NEAR(loads_[0]->MiBps(1s, 20s), 10, 0.4);
      for (const double rate : loads_[1]->Series(1s, 20s, 1s)) EXPECT_GT(rate / kMiB, 19.4);
    }
  }
}

// Of large requests a few are the whole of it, so that the last one may be too much or too little.
TEST_F(SlowDiskTest, WhateverIsUnderWay) {
  for (const int outstanding : {2, 4, 8, 12, 16, 24, 64}) {
    for (const uint64_t bytes : {64 * kKiB, 256 * kKiB, kMiB}) {
      const Writer writer{.outstanding = outstanding, .bytes = bytes};
      Writer small = writer, large = writer;
      small.promised = 5;
      large.promised = 20;
      Start({small, large});
      cluster_->RunTo(20s);
      EXPECT_GT(loads_[1]->MiBps(1s, 20s), 19.6) << outstanding << " of " << bytes;
      EXPECT_LT(loads_[1]->MiBps(1s, 20s), 21) << outstanding << " of " << bytes;
      EXPECT_NEAR(Sum(1s, 20s), 30, 0.3) << outstanding << " of " << bytes;
    }
  }
}

TEST_F(SlowDiskTest, OfThreeClassesEachHasItsPromise) {
  Start({{.promised = 5, .outstanding = 10},
         {.promised = 18, .outstanding = 10},
         {.outstanding = 10}});
  cluster_->RunTo(20s);
  EXPECT_GT(loads_[0]->MiBps(1s, 20s), 5 * 0.98);
  EXPECT_NEAR(loads_[1]->MiBps(1s, 20s), 18, 0.36);
  EXPECT_NEAR(Sum(1s, 20s), 30, 0.3);
}

TEST_F(SlowDiskTest, APromiseOfNearlyAllOfTheDisk) {
  Start({{}, {.promised = 25}});
  cluster_->RunTo(20s);
  EXPECT_NEAR(loads_[1]->MiBps(1s, 20s), 25, 0.5);
  EXPECT_NEAR(Sum(1s, 20s), 30, 0.3);
}

TEST_F(SlowDiskTest, APromiseInRequests) {
  Start({{}, {.iops = 320}});
  cluster_->RunTo(20s);
  EXPECT_NEAR(loads_[1]->Iops(1s, 20s), 320, 6.4);
  EXPECT_NEAR(Sum(1s, 20s), 30, 0.3);
}

TEST_F(SlowDiskTest, AClassThatAsksForLessGetsThatAndOthersTheRest) {
  Start({{}, {.promised = 20, .outstanding = 64, .pace = 5.0 * kMiB}});
  cluster_->RunTo(20s);
  EXPECT_NEAR(loads_[1]->MiBps(1s, 20s), 5, 0.1);
  EXPECT_NEAR(loads_[0]->MiBps(1s, 20s), 25, 0.3);
}

TEST_F(SlowDiskTest, ADiskThatRecoversIsUsedInFull) {
  Start({{.promised = 5}, {.promised = 20}}, 60);
  cluster_->At(10s, [&] { cluster_->osd().SetDeviceRate(60 * kMiB); });
  cluster_->At(20s, [&] { cluster_->osd().SetDeviceRate(30 * kMiB); });
  cluster_->RunTo(30s);
  EXPECT_NEAR(Sum(11s, 20s), 60, 0.6);
  EXPECT_NEAR(loads_[1]->MiBps(11s, 20s), 30, 1);
  EXPECT_NEAR(loads_[1]->MiBps(21s, 30s), 20, 0.4);
  EXPECT_NEAR(Sum(21s, 30s), 30, 0.3);
}

// Sixteen channels: what is held back is what they do not need.
TEST_F(SlowDiskTest, ADiskThatWorksInParallelStaysBusy) {
  const auto slots = sim::Slots(16, 30 * kMiB);
  Start({{.outstanding = 48}, {.outstanding = 24}}, 40, GateKind::kStrict, 0, slots);
  cluster_->RunTo(20s);
  const double before = Sum(1s, 20s);
  Start({{.outstanding = 48}, {.promised = 20, .outstanding = 24}}, 40, GateKind::kStrict, 0,
        slots);
  cluster_->RunTo(20s);
  EXPECT_NEAR(loads_[1]->MiBps(1s, 20s), 20, 0.6);
  EXPECT_GT(Sum(1s, 20s), 0.97 * before);
}

// Goal: what the disk does while it is run empty, to see how long a request takes alone, is not
// taken for what it can. Method: sixteen channels, and a class that is behind.
TEST_F(SlowDiskTest, ToRunItEmptySaysNothingOfWhatItCan) {
  Start({{.outstanding = 48, .bytes = 256 * kKiB},
         {.promised = 20, .outstanding = 24, .bytes = 256 * kKiB}},
        40, GateKind::kConserving, 0, sim::Slots(16, 30 * kMiB));
  for (Duration at = 1s; at < 30s; at += 1s) {
    cluster_->RunTo(at);
    EXPECT_FALSE(Estimate().slow) << ToSeconds(at);
  }
  EXPECT_NEAR(static_cast<double>(Estimate().bytes_per_s) / kMiB, 30, 1.5);
}

// Within a span the disk is busy, so that the alarm comes as it does without one.
TEST_F(SlowDiskTest, ThatItIsTooSlowIsSeenWhileItIsHeld) {
  for (const bool promised : {false, true}) {
    Start({{.outstanding = 64}, {.promised = promised ? 20u : 0u, .outstanding = 64}}, 60);
    cluster_->RunTo(20s);
    EXPECT_TRUE(Estimate().slow);
    EXPECT_NEAR(static_cast<double>(Estimate().bytes_per_s) / kMiB, 30, 0.3);
  }
}

// Where promises are kept anyway, or there are none, the device holds what it did.
TEST_F(SlowDiskTest, NothingIsHeldBackForAPromiseThatIsKept) {
  for (const bool promised : {false, true}) {
    Start({{.outstanding = 12}, {.promised = promised ? 10u : 0u, .outstanding = 12}});
    cluster_->RunTo(5s);
    EXPECT_EQ(cluster_->osd().scheduler().in_flight(), 24u);
    EXPECT_NEAR(Sum(1s, 5s), 30, 0.3);
    EXPECT_NEAR(loads_[1]->MiBps(1s, 5s), 15, 0.3);
  }
}

}  // namespace
}  // namespace weir::osd::qos
