// Arrivals, request shapes and trace readers.
#include <gmock/gmock.h>

#include "tools/sim/devices/simple.h"
#include "tools/sim/devices/ssd.h"
#include "tools/sim/engine/cluster.h"
#include "tools/sim/workloads/arrivals.h"
#include "tools/sim/workloads/shapes.h"
#include "tools/sim/workloads/stand_ins.h"
#include "tools/sim/workloads/trace.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using osd::qos::OpKind;
using ::testing::HasSubstr;

// Moments, in seconds, of everything that comes before `end`.
std::vector<double> Arrivals(Gap gap, double end) {
  Prng prng(3);
  std::vector<double> moments;
  double at = 0;
  for (;;) {
    const Duration wait = gap(prng);
    if (wait == Duration::max()) break;
    at += ToSeconds(wait);
    if (at > end) break;
    moments.push_back(at);
  }
  return moments;
}

// Variance over mean of the counts per second: 1 for Poisson.
double Burstiness(const std::vector<double>& moments, double end) {
  std::vector<double> counts(static_cast<size_t>(end));
  for (double at : moments) counts[std::min(counts.size() - 1, static_cast<size_t>(at))] += 1;
  const double deviation = StandardDeviation(counts);
  return deviation * deviation / Mean(counts);
}

TEST(ArrivalsTest, PoissonHasItsRateAndNoBursts) {
  const auto moments = Arrivals(Poisson(100), 1000);
  EXPECT_NEAR(static_cast<double>(moments.size()), 1e5, 1e3);
  EXPECT_NEAR(Burstiness(moments, 1000), 1, .15);
}

TEST(ArrivalsTest, OnOffIsSilentWhileOff) {
  const auto moments = Arrivals(PoissonOnOff(100, 2s, 2s), 400);
  EXPECT_NEAR(static_cast<double>(moments.size()), 2e4, 500);
  for (double at : moments) EXPECT_LT(std::fmod(at, 4), 2.0001);
}

TEST(ArrivalsTest, TheBModelKeepsItsMeanAndIsBursty) {
  Prng prng(5);
  const auto bursty = Arrivals(BModel(100, .75, 1000s, &prng), 2000);
  EXPECT_NEAR(static_cast<double>(bursty.size()), 1e5, 1e3);
  EXPECT_GT(Burstiness(bursty, 1000), 20);
  const auto even = Arrivals(BModel(100, .5, 1000s, &prng), 2000);
  EXPECT_LT(Burstiness(even, 1000), 2);
}

TEST(ShapesTest, LocalityIsTheChanceToFollow) {
  Prng prng(1);
  const Shape shape = MakeShape(
      {.least_bytes = 512, .most_bytes = 512, .reads = .25, .locality = .85, .span = 1 << 30});
  int follows = 0;
  int reads = 0;
  Io io;
  for (uint64_t n = 0; n < 20'000; ++n) {
    const uint64_t next = io.lba + io.bytes;
    shape(prng, n, &io);
    follows += io.lba == next ? 1 : 0;
    reads += io.op == OpKind::kRead ? 1 : 0;
    ASSERT_LT(io.lba, 1ull << 30);
  }
  EXPECT_NEAR(follows / 2e4, .85, .01);
  EXPECT_NEAR(reads / 2e4, .25, .01);
}

TEST(ShapesTest, ZipfPrefersTheFirstUnits) {
  Prng prng(1);
  const Shape shape = MakeShape({.span = 24 << 20, .zipf = .9, .units = 24});
  int first = 0;
  int last = 0;
  Io io;
  for (uint64_t n = 0; n < 20'000; ++n) {
    shape(prng, n, &io);
    first += io.lba < (1 << 20) ? 1 : 0;
    last += io.lba >= (23 << 20) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(first) / last, std::pow(24, .9), 5);
}

TEST(StandInsTest, HaveThePublishedMeans) {
  for (std::string_view name : StandInNames()) {
    Prng prng(2);
    LoadOptions options{.class_id = ClassId(16)};
    PlayStandIn(name, {.length = 600s}, &prng, &options);
    Cluster cluster(1);
    cluster.AddOsd(*ApplyProfile("noqos", {}), Flat(1e9));
    Load* load = cluster.Start(options);
    cluster.RunTo(name == "tpc-c" || name == "video" ? 1s : 600s);
    ASSERT_GT(load->done(), 1000u) << name;
    const double mean_bytes =
        static_cast<double>(load->done_bytes()) / static_cast<double>(load->done());
    if (name == "financial") {
      EXPECT_NEAR(load->Iops(0s, 600s), 102, 2);
      EXPECT_NEAR(mean_bytes, 3500, 300);
    }
    if (name == "websearch") {
      EXPECT_NEAR(load->Iops(0s, 600s), 337, 5);
    }
  }
}

// Not quite in order of time, in ticks of 100 ns.
TEST(TraceTest, MsrIsReadInOrderOfTime) {
  const auto trace = ParseMsr(
      "128166372003061629,usr,0,Read,7014609920,24576,41286\n"
      "128166372023061629,usr,1,Write,4096,512,1000\r\n"
      "128166372013061629,usr,0,Read,8192,4096,1000\n",
      "usr_0.csv");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->size(), 3u);
  EXPECT_EQ((*trace)[0].lba, 7014609920u);
  EXPECT_EQ((*trace)[0].bytes, 24576u);
  EXPECT_DOUBLE_EQ((*trace)[1].at_s, 1);
  EXPECT_DOUBLE_EQ((*trace)[2].at_s, 2);
  EXPECT_EQ((*trace)[2].unit, 1u);
  EXPECT_EQ((*trace)[2].op, osd::qos::OpKind::kWrite);
  EXPECT_THAT(ParseMsr("1,usr,0,Read,5\n", "m").status().message(),
              HasSubstr("m:1: 5 fields where Timestamp,Hostname"));
  EXPECT_THAT(ParseMsr("1,usr,0,R,5,512,1\n", "m").status().message(),
              HasSubstr("type 'R' is neither Read nor Write"));
}

TEST(TraceTest, SpcIsReadAndWrittenBack) {
  const std::string text = "0,20,8192,W,0.551706\n1,30,512,r,0.554041\n";
  const auto trace = ParseSpc(text, "t.spc");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->size(), 2u);
  EXPECT_EQ((*trace)[0].lba, 20u * 512);
  EXPECT_EQ((*trace)[0].op, OpKind::kWrite);
  EXPECT_EQ((*trace)[1].unit, 1u);
  EXPECT_EQ((*trace)[1].op, OpKind::kRead);
  EXPECT_EQ(ToSpc(*trace), "0,20,8192,W,0.551706\n1,30,512,R,0.554041\n");
  // Windows line ends, further fields, blank lines.
  EXPECT_EQ(ParseSpc("0,1,512,R,1.5,extra\r\n\n", "t")->size(), 1u);
}

TEST(TraceTest, BadLinesAreNamed) {
  EXPECT_THAT(ParseSpc("0,1,512,R,1\n0,1,512\n", "t.spc").status().message(),
              HasSubstr("t.spc:2: 3 fields where ASU,LBA,size,opcode,timestamp are needed"));
  EXPECT_THAT(ParseSpc("0,1,512,X,1\n", "t").status().message(), HasSubstr("opcode 'X'"));
  EXPECT_THAT(ParseSpc("0,1,512,R,2\n0,1,512,R,1\n", "t").status().message(),
              HasSubstr("t:2: time 1 is before"));
  EXPECT_THAT(ParseFioIolog("hello\n", "f.log").status().message(),
              HasSubstr("f.log:1: the first"));
  EXPECT_THAT(ParseFioIolog("fio version 2 iolog\nf read 5\n", "f").status().message(),
              HasSubstr("f:2: read and write need an offset"));
  EXPECT_EQ(ReadTrace("no-such-file", "spc").code(), ErrorCode::kNotFound);
}

TEST(TraceTest, FioLogsOfBothVersions) {
  const auto two = ParseFioIolog(
      "fio version 2 iolog\n/d/f add\n/d/f open\n/d/f write 4096 512\n/d/f wait 2000\n"
      "/d/f read 0 4096\n/d/f close\n",
      "f");
  ASSERT_TRUE(two.ok()) << two.status().message();
  ASSERT_EQ(two->size(), 2u);
  EXPECT_DOUBLE_EQ((*two)[1].at_s, .002);
  EXPECT_EQ((*two)[0].op, OpKind::kWrite);
  const auto three =
      ParseFioIolog("fio version 3 iolog\n0 f add\n1 f open\n7 f read 512 4096\n", "f");
  ASSERT_EQ(three->size(), 1u);
  EXPECT_DOUBLE_EQ((*three)[0].at_s, .007);
  EXPECT_EQ((*three)[0].bytes, 4096u);
}

TEST(TraceTest, PlaysAtItsMomentsAndFaster) {
  const Trace trace = *ParseSpc("0,1,512,R,1\n0,2,1024,W,3\n", "t");
  for (double speed : {1.0, 2.0}) {
    Cluster cluster(1);
    cluster.AddOsd(*ApplyProfile("noqos", {}), Flat(1e9));
    LoadOptions options{.class_id = ClassId(16)};
    PlayTrace(trace, speed, &options);
    Load* load = cluster.Start(options);
    cluster.RunTo(10s);
    ASSERT_EQ(load->completions().size(), 2u);
    EXPECT_NEAR(ToSeconds(load->completions()[1].sent - TimePoint{0}), 3 / speed, 1e-6);
    EXPECT_EQ(load->completions()[1].bytes, 1024u);
  }
}

TEST(SsdTest, ReadsUseAllChannelsAndWritesGoIntoTheBuffer) {
  const auto rate = [](OpKind op, int outstanding, Duration from, Duration to) {
    Cluster cluster(1);
    SchedulerConfig config = *ApplyProfile("noqos", {});
    config.depth = 64;
    cluster.AddOsd(config, Ssd({}));
    Load* load = cluster.Start({.class_id = ClassId(16),
                                .outstanding = outstanding,
                                .bytes = 4096,
                                .shape = [op](Prng& prng, uint64_t, Io* io) {
                                  io->op = op;
                                  io->lba = prng.Uniform(0, 1 << 20) * 4096;
                                }});
    cluster.RunTo(to);
    return load->Iops(from, to);
  };
  EXPECT_NEAR(rate(OpKind::kRead, 1, 0s, 1s), 1 / 70e-6, 200);
  EXPECT_GT(rate(OpKind::kRead, 64, 0s, 1s), .9 * 8 / 60e-6);
  EXPECT_GT(rate(OpKind::kWrite, 1, 0s, 5ms), 60'000);          // the buffer takes them
  EXPECT_NEAR(rate(OpKind::kWrite, 32, 1s, 3s), 40'000, 4000);  // 8 channels of 200 us
}

TEST(RecordedTest, PlaysItsTimesRoundAndRound) {
  Cluster cluster(1);
  cluster.AddOsd(*ApplyProfile("noqos", {}), Recorded({.001, .003}));
  Load* load = cluster.Start({.class_id = ClassId(16), .outstanding = 1});
  cluster.RunTo(1s);
  EXPECT_NEAR(load->Iops(0s, 1s), 500, 1);
}

}  // namespace
}  // namespace weir::sim
