#include "osd/qos/control/anticipation.h"

#include <gtest/gtest.h>

#include "tests/unit/osd/qos/virtual_device.h"
#include "tools/sim/devices/hdd.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Spec;

constexpr ClassId kReader{16}, kWriters{17};

class AnticipationTest : public ::testing::Test {
 protected:
  AnticipationTest() { anticipation_.Switch(true); }

  TimePoint now_{1'000'000'000};
  Anticipation anticipation_;
};

TEST_F(AnticipationTest, KeepsTheDeviceForAMomentAfterARead) {
  EXPECT_FALSE(anticipation_.Keeps(now_));
  anticipation_.Completed(kReader, false, now_);
  EXPECT_TRUE(anticipation_.Keeps(now_));
  EXPECT_EQ(anticipation_.kept_until(), now_ + Anticipation::kPatience);
  EXPECT_FALSE(anticipation_.Keeps(now_ + Anticipation::kPatience));
}

TEST_F(AnticipationTest, AsLongAsTheReaderGoesOnAskingButNoLongerThanATurn) {
  const TimePoint start = now_;
  while (now_ - start < Anticipation::kTurn) {
    anticipation_.Completed(kReader, false, now_);
    EXPECT_TRUE(anticipation_.Keeps(now_));
    anticipation_.Submitted(kReader);
    EXPECT_TRUE(anticipation_.Keeps(now_ + 9ms) || now_ + 9ms >= start + Anticipation::kTurn);
    now_ += 10ms;
  }
  EXPECT_FALSE(anticipation_.Keeps(now_));
  anticipation_.Completed(kReader, false, now_);
  EXPECT_FALSE(anticipation_.Keeps(now_)) << "the others go first";
  now_ = start + Anticipation::kTurn + Anticipation::kPause;
  anticipation_.Completed(kReader, false, now_);
  EXPECT_TRUE(anticipation_.Keeps(now_));
}

TEST_F(AnticipationTest, ATurnCountsFromWhenTheWorkOfOthersIsOverButNotForEver) {
  const auto kept_for = [this](Duration others_work) {
    const TimePoint start = now_;
    do {
      anticipation_.Completed(kReader, now_ - start < others_work, now_);
      anticipation_.Submitted(kReader);
      now_ += 10ms;
    } while (anticipation_.Keeps(now_));
    return now_ - start;
  };
  EXPECT_EQ(kept_for(1s), 1s - 10ms + Anticipation::kTurn);
  now_ += Anticipation::kPause;
  EXPECT_EQ(kept_for(1h), Anticipation::kClearing - 10ms + Anticipation::kTurn);
}

TEST_F(AnticipationTest, OthersDoNotLengthenATurn) {
  anticipation_.Completed(kReader, false, now_);
  anticipation_.Completed(kWriters, false, now_ + 4ms);
  anticipation_.Submitted(kWriters);
  EXPECT_EQ(anticipation_.kept_until(), now_ + Anticipation::kPatience);
}

TEST_F(AnticipationTest, SwitchedOffItKeepsNothing) {
  anticipation_.Completed(kReader, false, now_);
  anticipation_.Switch(false);
  EXPECT_FALSE(anticipation_.Keeps(now_));
  anticipation_.Completed(kReader, false, now_);
  EXPECT_FALSE(anticipation_.Keeps(now_));
}

struct Outcome {
  double reads = 0;     // per second
  double writes = 0;    // MiB/s
  double promised = 0;  // MiB/s of a reserved class
};

// A reader near the beginning of a disk, writers and a reserved class near its end.
Outcome OnADisk(bool anticipation, bool others = true) {
  SchedulerConfig config = *ApplyProfile("unified", {});
  config.token_rate = 20 * kMiB;
  config.anticipation = anticipation;
  sim::Cluster cluster(1);
  cluster.AddOsd(config, sim::Hdd(model::HddModelOf("dtla-307075")));
  constexpr ClassId kPromised{18};
  cluster.SetClass(Spec(kReader));
  cluster.SetClass(Spec(kWriters));
  cluster.SetClass(sim::Reserved(kPromised, 2 * kMiB));
  const auto at = [](OpKind op, uint64_t from) {
    return [op, from](Prng& prng, uint64_t, sim::Io* io) {
      io->op = op;
      io->lba = from + prng.Uniform(0, 1 << 20) * 4096;
    };
  };
  Load* reader = cluster.Start({.class_id = kReader,
                                .outstanding = 1,
                                .bytes = 4 * kKiB,
                                .shape = at(OpKind::kRead, 0),
                                .think = 100us});
  if (!others) {
    cluster.RunTo(10s);
    return {reader->Iops(2s, 10s)};
  }
  Load* writers = cluster.Start({.class_id = kWriters,
                                 .outstanding = 16,
                                 .bytes = 256 * kKiB,
                                 .shape = at(OpKind::kWrite, uint64_t{60} << 30)});
  Load* promised = cluster.Start({.class_id = kPromised,
                                  .outstanding = 8,
                                  .bytes = 256 * kKiB,
                                  .shape = at(OpKind::kWrite, uint64_t{60} << 30)});
  cluster.RunTo(10s);
  return {reader->Iops(2s, 10s), writers->MiBps(2s, 10s), promised->MiBps(2s, 10s)};
}

TEST(AnticipationOnADiskTest, AReaderIsNearlyAloneForItsTurnsAndPromisesHold) {
  const double alone = OnADisk(true, false).reads;
  const Outcome off = OnADisk(false), on = OnADisk(true);
  EXPECT_LT(off.reads, 0.5 * alone);
  EXPECT_GT(on.reads, 1.3 * off.reads);
  EXPECT_LT(on.writes, off.writes);
  EXPECT_GT(on.writes, 0.1 * off.writes) << "they have the pauses";
  EXPECT_GT(on.promised, 0.97 * 2);
}

}  // namespace
}  // namespace weir::osd::qos
