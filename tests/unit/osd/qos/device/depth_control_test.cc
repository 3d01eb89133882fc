#include "osd/qos/device/depth_control.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/osd/qos/virtual_device.h"
#include "tools/sim/devices/chunked.h"
#include "tools/sim/devices/simple.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Spec;

constexpr ClassId kReader{16}, kWriters{17};
constexpr double kDevice = 1024.0 * kMiB;

SchedulerConfig Config(std::string_view profile) {
  SchedulerConfig base;
  base.token_rate = 200 * kMiB;
  return *ApplyProfile(profile, base);
}

struct Outcome {
  double reads = 0;   // per second
  double writes = 0;  // MiB/s
};

// A synchronous 4 KiB reader (10,000/s with the device to itself) beside 64 writers.
Outcome Beside(sim::Cluster* cluster, uint64_t write_bytes) {
  cluster->SetClass(Spec(kReader));
  cluster->SetClass(Spec(kWriters));
  Load* reader =
      cluster->Start({.class_id = kReader,
                      .outstanding = 1,
                      .bytes = 4 * kKiB,
                      .shape = [](Prng&, uint64_t, sim::Io* io) { io->op = OpKind::kRead; },
                      .think = 96us});
  Load* writers = cluster->Start({.class_id = kWriters, .outstanding = 64, .bytes = write_bytes});
  cluster->RunTo(5s);
  return {reader->Iops(1s, 5s), writers->MiBps(1s, 5s)};
}

Outcome BesideOnFlat(std::string_view profile, uint64_t write_bytes) {
  sim::Cluster cluster(1);
  cluster.AddOsd(Config(profile), sim::Flat(kDevice));
  return Beside(&cluster, write_bytes);
}

Outcome BesideInPieces(uint64_t write_bytes) {
  sim::Cluster cluster(1);
  sim::SimOsd* osd = nullptr;
  osd = &cluster.AddOsd(Config("unified"), sim::Chunked(kDevice, [&] {
                          return osd->scheduler().Advise(cluster.events().now()).piece_bytes;
                        }));
  return Beside(&cluster, write_bytes);
}

// The aim of depth control: what a reader that waits for each answer keeps of its rate, and that
// the writers lose no more than it takes.
TEST(DepthControlTest, ASmallReaderIsNotBuriedUnderWritesAndTheyLoseNothing) {
  const Outcome before = BesideOnFlat("noqos", 64 * kKiB);
  EXPECT_LT(before.reads, 400);
  const Outcome small = BesideOnFlat("unified", 64 * kKiB);
  EXPECT_GT(small.reads, 5000);
  EXPECT_GT(small.writes + small.reads / 256, 1020);
  const Outcome large = BesideOnFlat("unified", kMiB);
  EXPECT_GT(large.reads, 450);
  EXPECT_GT(large.writes + large.reads / 256, 1020);
  const Outcome pieces = BesideInPieces(kMiB);
  EXPECT_GT(pieces.reads, 2500);
  EXPECT_GT(pieces.writes + pieces.reads / 256, 1020);
}

// Goal: on a device that needs many requests at once the bound rises to what keeps it busy.
// Method: 16 servers, writers of 256 KiB with and without a hurried reader beside them.
TEST(DepthControlTest, AParallelDeviceStaysBusyWhenKeptShort) {
  double alone = 0;
  for (const bool hurry : {false, true}) {
    sim::Cluster cluster(3);
    cluster.AddOsd(Config("unified"), sim::Slots(16, kDevice));
    cluster.SetClass(Spec(kReader));
    cluster.SetClass(Spec(kWriters));
    Load* writers = cluster.Start({.class_id = kWriters, .outstanding = 64, .bytes = 256 * kKiB});
    Load* reader = cluster.Start(
        {.class_id = kReader, .outstanding = hurry ? 1 : 0, .bytes = 4 * kKiB, .think = 100us});
    cluster.RunTo(10s);
    const double rate = writers->MiBps(2s, 10s);
    if (!hurry) {
      alone = rate;
    } else {
      EXPECT_GT(rate, 0.93 * alone) << "reader " << reader->Iops(2s, 10s);
      EXPECT_GT(reader->Iops(2s, 10s), 700);
    }
  }
}

// Best effort only: nobody is in a hurry, the order and the depth are those of a plain queue.
TEST(DepthControlTest, AloneAClassGetsWhatNoQosGives) {
  for (const uint64_t bytes : {4 * kKiB, 64 * kKiB, kMiB}) {
    double rates[2];
    for (int i = 0; i < 2; ++i) {
      sim::Cluster cluster(5);
      cluster.AddOsd(Config(i == 0 ? "noqos" : "unified"), sim::Slots(16, kDevice));
      Load* load = cluster.Start({.class_id = kBestEffort, .outstanding = 64, .bytes = bytes});
      cluster.RunTo(2s);
      rates[i] = load->MiBps(200ms, 2s);
    }
    EXPECT_NEAR(rates[1] / rates[0], 1, 0.02) << bytes;
  }
}

class BareDepthControlTest : public ::testing::Test {
 protected:
  Request* Submit(uint64_t bytes, TimePoint now, OpKind op = OpKind::kWrite) {
    requests_.emplace_back();
    Request* request = &requests_.back();
    request->bytes = bytes;
    request->op = op;
    request->dispatched = now;
    model_.Submitted(*request, in_flight_++);
    depth_.Submitted(request, false);
    return request;
  }
  void Complete(Request* request, TimePoint now) {
    depth_.Completed(*request, now);
    model_.Completed(*request, now);
    --in_flight_;
  }
  // One at a time: 1 ms per MiB and 10 us each.
  TimePoint Teach(TimePoint now) {
    for (int i = 0; i < 40; ++i) {
      const uint64_t bytes = i % 2 == 0 ? kMiB : 64 * kKiB;
      Request* request = Submit(bytes, now);
      now += 10us + Duration(static_cast<int64_t>(bytes)) * 1'000'000 / kMiB;
      Complete(request, now);
    }
    return now;
  }
  // As the device asks before each decision.
  bool HasSlot(TimePoint now) {
    depth_.ProbeIfDue(now);
    return depth_.HasSlot(now);
  }
  std::deque<Request> requests_;
  CostModel model_;
  DepthControl depth_{&model_};
  size_t in_flight_ = 0;
};

TEST_F(BareDepthControlTest, BytesBoundTheDepth) {
  TimePoint now = Teach({});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(depth_.HasSlot(now));
    Submit(kMiB, now);
  }
  EXPECT_FALSE(depth_.HasSlot(now));
}

TEST_F(BareDepthControlTest, KeptShortASerialDeviceHoldsTwo) {
  TimePoint now = Teach({});
  depth_.KeepShort(now);
  Submit(kMiB, now);
  EXPECT_TRUE(depth_.HasSlot(now));
  Submit(kMiB, now);
  EXPECT_FALSE(depth_.HasSlot(now));
  now += DepthControl::kShortFor;
  EXPECT_TRUE(depth_.HasSlot(now));
}

TEST_F(BareDepthControlTest, AFewLightRequestsPassBeyondIt) {
  TimePoint now = Teach({});
  depth_.KeepShort(now);
  Submit(kMiB, now);
  Submit(kMiB, now);
  Request small;
  small.bytes = kInteractiveBytesMax;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(depth_.HasSlotBeyond(small));
    Submit(small.bytes, now);
  }
  EXPECT_FALSE(depth_.HasSlotBeyond(small));
  Request large;
  large.bytes = kInteractiveBytesMax + 1;
  EXPECT_FALSE(depth_.HasSlotBeyond(large));
}

// Writers of 64 KiB are small too, but in no hurry: the place beyond the depth is not theirs.
TEST_F(BareDepthControlTest, SmallNeighboursLeaveThePlaceOfTheLight) {
  TimePoint now = Teach({});
  depth_.KeepShort(now);
  for (int i = 0; i < 8; ++i) {
    requests_.emplace_back();
    requests_.back().bytes = 64 * kKiB;
    requests_.back().finish_time = TimePoint::Max();
    depth_.Submitted(&requests_.back(), false);
  }
  Request hurried;
  hurried.bytes = 4 * kKiB;
  hurried.finish_time = now;
  EXPECT_TRUE(depth_.HasSlotBeyond(hurried));
  Request in_no_hurry;
  in_no_hurry.bytes = 4 * kKiB;
  in_no_hurry.finish_time = TimePoint::Max();
  EXPECT_FALSE(depth_.HasSlotBeyond(in_no_hurry));
}

TEST_F(BareDepthControlTest, ALatencyThatWasNeverSeenAloneIsProbed) {
  TimePoint now{};
  Request* first = Submit(kMiB, now);
  Request* second = Submit(kMiB, now);
  depth_.KeepShort(now);
  EXPECT_FALSE(HasSlot(now));  // running empty
  EXPECT_FALSE(depth_.HasSlotBeyond(*first));
  now += 1ms;
  Complete(first, now);
  EXPECT_FALSE(HasSlot(now));
  now += 1ms;
  Complete(second, now);
  EXPECT_TRUE(HasSlot(now));
  Request* alone = Submit(kMiB, now);
  EXPECT_FALSE(HasSlot(now));
  now += 1ms;
  Complete(alone, now);
  EXPECT_EQ(model_.Alone(OpKind::kWrite, kMiB), 1ms);
  for (int i = 1; i <= DepthControl::kFirstProbes; ++i) {
    Request* next = Submit(kMiB, now);
    EXPECT_FALSE(HasSlot(now));
    Complete(next, now += 1ms);
  }
  Submit(kMiB, now);
  EXPECT_TRUE(HasSlot(now));  // known now
}

TEST_F(BareDepthControlTest, PiecesTakeATenthOfAMillisecondOrWhatTheirFixedCostAllows) {
  TimePoint now = Teach({});
  EXPECT_EQ(depth_.PieceBytes(now), UINT64_MAX);
  depth_.KeepShort(now);
  // 10 us fixed, about 1 ns per byte: at least 157 us of bytes, so that 10 us are 6 %.
  EXPECT_EQ(depth_.PieceBytes(now), 192 * kKiB);
}

}  // namespace
}  // namespace weir::osd::qos
