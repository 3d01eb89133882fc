// The models on their own queue: what is here beyond the simulator's (tests/unit/tools/sim).
#include <gtest/gtest.h>

#include "common/disk/model/hdd.h"
#include "common/disk/model/ssd.h"

namespace weir::model {
namespace {

using namespace std::chrono_literals;
using Kind = DiskIo::Kind;

class Bench {
 public:
  EventQueue events;
  std::unique_ptr<DiskModel> disk;

  // Submits now; the end is in the place that is returned.
  std::shared_ptr<TimePoint> Submit(Kind kind, uint64_t offset, uint64_t bytes) {
    auto end = std::make_shared<TimePoint>(TimePoint::Max());
    disk->Submit({kind, offset, bytes}, [this, end](Duration) { *end = events.now(); });
    return end;
  }
  Duration Alone(Kind kind, uint64_t offset, uint64_t bytes) {
    const TimePoint from = events.now();
    const auto end = Submit(kind, offset, bytes);
    while (*end == TimePoint::Max()) events.RunTo(events.next());
    return *end - from;
  }
};

TEST(SsdModelTest, MovesItsRateAndAnswersSmallReadsInPageTime) {
  Bench bench;
  bench.disk = MakeSsd(&bench.events, Ssd200());
  EXPECT_NEAR(ToSeconds(bench.Alone(Kind::kRead, 0, 4096)), 8 * 4096 / 200e6 + 10e-6, 1e-8);
  const TimePoint from = bench.events.now();
  std::shared_ptr<TimePoint> last;
  for (uint64_t i = 0; i < 100; ++i) last = bench.Submit(Kind::kWrite, i << 20, 1 << 20);
  while (*last == TimePoint::Max()) bench.events.RunTo(bench.events.next());
  // All but the buffer's 4 MiB.
  EXPECT_NEAR(ToSeconds(*last - from), 96 * 1048576 / 200e6, 0.01);
}

TEST(SsdModelTest, AReadPassesTheProgramsThatWaitAndTheyTakeLonger) {
  for (const bool first : {false, true}) {
    SsdModel model = Ssd200();
    model.read_first = first;
    Bench bench;
    bench.disk = MakeSsd(&bench.events, model);
    bench.Alone(Kind::kWrite, 0, 4 << 20);
    const Duration read = bench.Alone(Kind::kRead, 64 << 20, 4096);
    if (first) {
      EXPECT_LT(read, 200us);
    } else {
      EXPECT_GT(read, 15ms);
    }
  }
}

TEST(SsdModelTest, AnUnprotectedBufferIsProgrammedByAFlush) {
  SsdModel model = Ssd200();
  model.protected_buffer = false;
  Bench bench;
  bench.disk = MakeSsd(&bench.events, model);
  bench.Alone(Kind::kWrite, 0, 2 << 20);
  EXPECT_GT(bench.Alone(Kind::kFlush, 0, 0), 8ms);
  EXPECT_LT(bench.Alone(Kind::kFlush, 0, 0), 20us);
}

TEST(SsdModelTest, IopsBoundSmallReads) {
  SsdModel model = Ssd200();
  SetIops(&model, 1000);
  Bench bench;
  bench.disk = MakeSsd(&bench.events, model);
  std::shared_ptr<TimePoint> last;
  for (uint64_t i = 0; i < 1000; ++i) last = bench.Submit(Kind::kRead, i * 4096, 4096);
  while (*last == TimePoint::Max()) bench.events.RunTo(bench.events.next());
  EXPECT_NEAR(ToSeconds(*last - TimePoint{0}), 1, 0.01);
}

double RandomReads(int ncq, uint64_t* worst_ms) {
  HddModel model = HddModelOf("sata-7200");
  model.capacity = 20ull << 30;
  model.ncq = ncq;
  Bench bench;
  bench.disk = MakeHdd(&bench.events, model, 1, model.capacity, Prng(3));
  Prng prng(5);
  int ended = 0;
  std::function<void()> next = [&] {
    const uint64_t at = prng.Uniform(0, model.capacity / 4096 - 1) * 4096;
    const TimePoint from = bench.events.now();
    bench.disk->Submit({Kind::kRead, at, 4096}, [&, from](Duration) {
      ++ended;
      const auto ms = static_cast<uint64_t>((bench.events.now() - from) / 1ms);
      *worst_ms = std::max(*worst_ms, ms);
      next();
    });
  };
  for (int i = 0; i < 32; ++i) next();
  bench.events.RunTo(TimePoint{0} + 60s);
  return ended / 60.0;
}

TEST(SsdModelTest, AClockIsNeededForAnswersAndForProgramsThatSomebodyWaitsFor) {
  Bench bench;
  bench.disk = MakeSsd(&bench.events, Ssd200());
  const auto alarm = [&] { return bench.disk->NextAlarm(bench.events); };
  EXPECT_EQ(alarm().answer, TimePoint::Max());
  bench.Submit(Kind::kWrite, 0, 4096);
  EXPECT_EQ(alarm().answer, TimePoint{12048});  // 10 us and 4 KiB at 2 GB/s
  EXPECT_EQ(alarm().progress, TimePoint::Max());
  bench.events.RunTo(TimePoint{12048});
  EXPECT_EQ(alarm().answer, TimePoint::Max());
  ASSERT_LT(bench.events.next(), TimePoint::Max());  // it is still being programmed
  EXPECT_EQ(alarm().progress, TimePoint::Max());
  bench.Submit(Kind::kWrite, 1 << 20, 4 << 20);  // more than the buffer has left
  EXPECT_EQ(alarm().answer, TimePoint::Max());
  EXPECT_EQ(alarm().progress, bench.events.next());
  bench.Submit(Kind::kRead, 4096, 4096);
  EXPECT_EQ(alarm().answer - bench.events.now(), 173840ns);  // of one page and the overhead
}

TEST(HddModelTest, AQueueOfItsOwnMakesItFasterAndStarvesNobody) {
  uint64_t worst_in_order = 0;
  uint64_t worst_ordered = 0;
  const double in_order = RandomReads(1, &worst_in_order);
  const double ordered = RandomReads(32, &worst_ordered);
  EXPECT_NEAR(in_order, 1 / (8.5e-3 + 4.17e-3 + .1e-3), 3);
  EXPECT_GT(ordered, 1.4 * in_order);
  EXPECT_LT(worst_ordered, 96 * 20u);
}

TEST(HddModelTest, AFlushEmptiesTheWriteCacheBesideReads) {
  HddModel model = HddModelOf("sata-7200");
  Bench bench;
  bench.disk = MakeHdd(&bench.events, model, 1, model.capacity, Prng(3));
  EXPECT_LT(bench.Alone(Kind::kFlush, 0, 0), 1ms);
  const Duration cached = bench.Alone(Kind::kWrite, 1ull << 40, 4096);
  EXPECT_LT(cached, 1ms);
  bench.Submit(Kind::kWrite, 2ull << 40, 4096);
  const auto flush = bench.Submit(Kind::kFlush, 0, 0);
  const auto read = bench.Submit(Kind::kRead, 0, 4096);
  const auto later = bench.Submit(Kind::kWrite, 4096, 4096);  // stays outside until the flush ends
  while (*flush == TimePoint::Max()) bench.events.RunTo(bench.events.next());
  EXPECT_GT(*flush - TimePoint{0}, 2ms);
  EXPECT_EQ(*later, TimePoint::Max());
  bench.events.RunTo(bench.events.now() + 1s);
  EXPECT_NE(*read, TimePoint::Max());
  EXPECT_NE(*later, TimePoint::Max());
}

// One by one, each of sixteen would let a read pass.
TEST(HddModelTest, NeighboursInTheCacheAreWrittenBackInOnePass) {
  HddModel model = HddModelOf("sata-7200");
  Bench bench;
  bench.disk = MakeHdd(&bench.events, model, 1, model.capacity, Prng(3));
  for (uint64_t i = 0; i < 16; ++i) bench.Submit(Kind::kWrite, (1 << 30) + (i << 16), 1 << 16);
  bench.Submit(Kind::kRead, 0, 4096);
  bench.events.RunTo(TimePoint{0} + 5ms);  // the read is still under way, all of them are there
  const auto flush = bench.Submit(Kind::kFlush, 0, 0);
  int reads = 0;
  std::function<void()> read = [&] {
    ++reads;
    bench.disk->Submit({Kind::kRead, 0, 4096}, [&](Duration) { read(); });
  };
  read();
  while (*flush == TimePoint::Max()) bench.events.RunTo(bench.events.next());
  EXPECT_LE(reads, 4);
}

}  // namespace
}  // namespace weir::model
