#include "osd/qos/device/anticipation.h"

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
    anticipation_.Submitted(kReader, now_, false);
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
      anticipation_.Submitted(kReader, now_, false);
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
  anticipation_.Submitted(kWriters, now_, false);
  EXPECT_EQ(anticipation_.kept_until(), now_ + Anticipation::kPatience);
}

TEST_F(AnticipationTest, WhoReadsOnOtherDisksTooIsWaitedForAsLongAsHeIsAway) {
  const auto returns_after = [this](Duration away, bool was_elsewhere) {
    for (int i = 0; i < 100; ++i) {
      anticipation_.Completed(kReader, false, now_);
      now_ += away;
      anticipation_.Submitted(kReader, now_, was_elsewhere);
      now_ += 4ms;
    }
    anticipation_.Completed(kReader, false, now_);
    return anticipation_.kept_until() - now_;
  };
  EXPECT_EQ(returns_after(3ms, false), Anticipation::kPatience);
  const Duration patience = returns_after(12ms, true);
  EXPECT_GT(patience, 58ms);
  EXPECT_LE(patience, 60ms);
  EXPECT_GT(returns_after(70ms, true), 99ms);
  EXPECT_LE(returns_after(1s, true), Anticipation::kPatienceMax);
  EXPECT_EQ(returns_after(12ms, false), Anticipation::kPatience) << "he is thinking";
}

TEST_F(AnticipationTest, AnotherReaderIsNotWaitedForLikeTheLast) {
  for (int i = 0; i < 100; ++i) {
    anticipation_.Completed(kReader, false, now_);
    now_ += 15ms;
    anticipation_.Submitted(kReader, now_, true);
  }
  now_ += Anticipation::kTurn + Anticipation::kPause;
  anticipation_.Completed(kWriters, false, now_);
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

// A reader near the beginning of disks, writers and a reserved class near their end.
Outcome OnDisks(int disks, bool anticipation, bool others = true) {
  SchedulerConfig config = *ApplyProfile("unified", {});
  config.token_rate = 20 * kMiB;
  config.anticipation = anticipation;
  sim::Cluster cluster(1);
  for (int i = 0; i < disks; ++i) {
    cluster.AddOsd(config, sim::Hdd(model::HddModelOf("dtla-307075")));
  }
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
  Load* reader =
      cluster.Start({.class_id = kReader,
                     .outstanding = 1,
                     .bytes = 4 * kKiB,
                     .route =
                         [disks, prng = Prng(7)](uint64_t) mutable {
                           return std::pair<size_t, size_t>(prng.Uniform(0, disks - 1), 0);
                         },
                     .shape = at(OpKind::kRead, 0),
                     .think = 100us});
  if (!others) {
    cluster.RunTo(10s);
    return {reader->Iops(2s, 10s)};
  }
  const auto write_on = [&](size_t osd, ClassId id, int outstanding) {
    return cluster.Start({.class_id = id,
                          .outstanding = outstanding,
                          .bytes = 256 * kKiB,
                          .osd = osd,
                          .shape = at(OpKind::kWrite, uint64_t{60} << 30)});
  };
  std::vector<Load*> writers, promised;
  for (int i = 0; i < disks; ++i) {
    writers.push_back(write_on(i, kWriters, 16));
    promised.push_back(write_on(i, kPromised, 8));
  }
  cluster.RunTo(10s);
  Outcome outcome{.reads = reader->Iops(2s, 10s)};
  for (Load* load : writers) outcome.writes += load->MiBps(2s, 10s);
  for (Load* load : promised) outcome.promised += load->MiBps(2s, 10s);
  return outcome;
}

TEST(AnticipationOnADiskTest, AReaderIsNearlyAloneForItsTurnsAndPromisesHold) {
  const double alone = OnDisks(1, true, false).reads;
  const Outcome off = OnDisks(1, false), on = OnDisks(1, true);
  EXPECT_LT(off.reads, 0.5 * alone);
  EXPECT_GT(on.reads, 1.3 * off.reads);
  EXPECT_LT(on.writes, off.writes);
  EXPECT_GT(on.writes, 0.1 * off.writes) << "they have the pauses";
  EXPECT_GT(on.promised, 0.97 * 2);
}

TEST(AnticipationOnADiskTest, AReaderOfThreeDisksToo) {
  const double alone = OnDisks(3, true, false).reads;
  const Outcome off = OnDisks(3, false), on = OnDisks(3, true);
  EXPECT_GT(on.reads, 2 * off.reads) << alone << " alone";
  EXPECT_GT(on.writes, 0.1 * off.writes);
}

}  // namespace
}  // namespace weir::osd::qos
