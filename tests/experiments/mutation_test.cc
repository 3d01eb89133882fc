// Deliberately broken mechanisms: every fault of `weir-sim run --break` must turn the checks below
// red, each in the experiment that is about it. That without a fault all checks are green is what
// `weir-sim run` shows, which the build runs beside this test.
// The list is the promise that the experiments measure what they say; tools/sim/README.md has it
// for people.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "tools/sim/experiment.h"

namespace weir::sim {
namespace {

using SimRun = Run;  // within a test, Run is gtest's own

struct Mutation {
  Fault fault;
  const char* experiment;
  std::vector<std::string_view> checks;  // beginnings of the names of checks that must fail
};

const std::vector<Mutation>& Mutations() {
  static const std::vector<Mutation> mutations{
      {Fault::kDelayOff, "E3", {"g : f in all"}},
      {Fault::kDelayOff, "E4", {"g : f in all"}},
      {Fault::kDelayOff,
       "E5",
       {"g : f in all", "flat bricks, g : f with 3", "flat bricks, g : f with 4",
        "flat bricks, g : f with 7"}},
      {Fault::kDelayOff,
       "E6",
       {"g : f in all", "bursts of 20: deviation over 1 s windows, 1",
        "bursts of 20: deviation with 2", "bursts of 20: deviation with 4"}},
      {Fault::kDelayOff, "E7", {"g : f in all", "flat brick, HYBRID-H: g on A, MB/s, 2"}},
      {Fault::kDelayOff, "E8", {"f : g in all"}},
      {Fault::kDelayOff, "E9", {"deviation of totals, TOTAL"}},
      {Fault::kDelayOff, "E10", {"100 random scenarios: broke the bound of theorems 2 and 4"}},
      {Fault::kDelayOff,
       "E30b",
       {"example V, TOTAL-DSFQ", "figure 4, TOTAL-DSFQ", "figure 4, SSD busy"}},
      {Fault::kDelayOff, "E50", {"totals over two OSDs"}},
      {Fault::kDelayOff,
       "E53",
       {"lowest second, MiB/s, even", "highest second", "seconds off the promise"}},
      {Fault::kDelayOff,
       "E55",
       {"limit of 30 MiB/s over all OSDs", "promise of 2000 requests a second"}},
      {Fault::kHistoryOff, "E12", {"HYBRID-H, g : f, bursts of 20"}},
      {Fault::kMinimumOff,
       "E7",
       {"share of g on A, 20", "share of g on A, all of B its own, 20",
        "g : f in all (text: reasonably close)", "flat brick, HYBRID: g on A, MB/s (minimum .5), 6",
        "flat brick, HYBRID-H: g on A, MB/s, 6"}},
      {Fault::kMinimumLarge,
       "E7",
       {"g : f in all (text: balanced), 8", "g : f in all, 12", "share of g on A, all of B its own",
        "flat brick, HYBRID: g : f in all (text: balanced), 4",
        "flat brick, HYBRID: g on A, MB/s (minimum .5), 5",
        "flat brick, HYBRID-H: g on A, MB/s, 4"}},
      {Fault::kMinimumOff, "E9", {"smallest share of A in 5 s, HYBRID"}},
      {Fault::kSharesOff, "E2", {"threads of g from which"}},
      {Fault::kSharesOff, "E5", {"flat bricks, g : f with 1", "flat bricks, g : f with 2"}},
      {Fault::kSharesOff, "E50", {"largest part of theorem 1's bound"}},
      {Fault::kSharesOff, "E10", {"100 random scenarios: broke the bound of theorem 1"}},
      {Fault::kReservationOff, "E42", {"[62,90) writer 1", "[62,90) writer 3"}},
      {Fault::kReservationOff, "E46", {"transaction of 8 MiB/s"}},
      {Fault::kReservationOff, "E47", {"R = 40 MiB/s over four OSDs", "what the hogs' OSD gives"}},
      {Fault::kStripesApart,
       "E47",
       {"hogs on one only: the file", "hogs on one only: the fastest OSD"}},
      {Fault::kReservationOff, "E50", {"promised 10", "hogs meanwhile"}},
      {Fault::kReservationOff, "E52", {"least part of its promise on the disk in 10 s, writer 3"}},
      {Fault::kMaximizerOff, "E52", {"lowest G at the end, disk"}},
      {Fault::kWindowShort,
       "E52",
       {"most turns of its weight by 5 % or more in 100 s, writer 1",
        "most turns of its weight by 5 % or more in 100 s, writer 2",
        "most turns of its weight by 5 % or more in 100 s, writer 3"}},
      {Fault::kReservationOff, "E53", {"lowest second"}},
      {Fault::kTransactionsOff, "E46", {"transaction of 8 MiB/s"}},
      {Fault::kLimitOff,
       "E55",
       {"limit of 30 MiB/s", "its highest second", "limit of 20 MiB/s: lowest second",
        "limit of 20 MiB/s: highest second", "limit of 10 MiB/s on each OSD: on the fullest, 33",
        "limit of 10 MiB/s on each OSD: on the fullest, 80",
        "limit of 10 MiB/s on each OSD: on the fullest, 100",
        "limit of 10 MiB/s on each OSD: in all, 33", "limit of 10 MiB/s on each OSD: in all, 80",
        "limit of 10 MiB/s on each OSD: in all, 100", "a limit below the promise"}},
      {Fault::kLimitUndivided,
       "E55",
       {"limit of 20 MiB/s: highest second, 2 mounts",
        "limit of 20 MiB/s: highest second, 3 mounts",
        "limit of 20 MiB/s: highest second, 3 mounts on an OSD each",
        "limit of 20 MiB/s: highest second, 6 mounts"}},
      {Fault::kGateOpen, "E42", {"[2,30) writer 1", "most beyond G"}},
      {Fault::kGateOpen, "E47", {"hogs on none: four times G"}},
      {Fault::kGateOpen, "E44", {"(3) A = 60 above G, without maximizer"}},
      {Fault::kGateOpen, "E49", {"strict gate holds back"}},
      {Fault::kGateShut,
       "E57",
       {"requests a second over a FIFO's", "mean latency over a FIFO's, unified"}},
      {Fault::kBoundIgnored, "E59", {"what 40 ms leave over what 2 ms leave"}},
      {Fault::kMaximizerOff, "E43", {"sum in [70,90)"}},
      {Fault::kMaximizerOff, "E44", {"(3) A = 60 above G, with maximizer"}},
      {Fault::kLatestStartIgnored, "E31", {"(5) at 19 ms"}},
      {Fault::kLatestStartIgnored, "E32", {"Financial within 120 ms, CVC less C-SCAN"}},
      {Fault::kLatestStartIgnored,
       "E36",
       {"CVC over VC, overbooked", "late, CVC less VC (text: a small gap), S = 10",
        "late, C-SCAN less CVC (text: C-SCAN has most), S = 9",
        "late, C-SCAN less CVC (text: C-SCAN has most), S = 10", "gap of C-SCAN and CVC at S = 10",
        "gap at S = 12", "late, C-SCAN less CVC, S = 13"}},
      {Fault::kRunUnbounded, "E36", {"CVC with M_run 1 over VC", "CVC with M_run 1 over C-SCAN"}},
      {Fault::kLatestStartIgnored, "E37", {"gain at S = 10"}},
      {Fault::kRunUnbounded,
       "E37",
       {"CVC over VC, S = 1", "CVC over VC, S = 2", "CVC over VC, S = 3",
        "gain with sequential streams"}},
      {Fault::kLatestStartIgnored,
       "E39",
       {"efficiency over C-SCAN's with est = 0.53", "efficiency over C-SCAN's with est = 1.00",
        "part of VC's loss", "and how much more with 1.55 P90", "late requests, C-SCAN less est",
        "late requests, est = .53 P90 less P90", "late requests: slope beyond P90"}},
      {Fault::kManagerSlow,
       "E40",
       {"three nodes: mean latency", "40 full nodes", "160 full nodes", "200 full nodes"}},
      {Fault::kCacheOff, "E41", {"loss of the sum"}},
      {Fault::kMeasurementOff,
       "E33",
       {"run 1: measured", "run 1: measured of the oracle's", "run 2: measured",
        "run 2: measured of the oracle's", "run 3: measured", "run 3: measured of the oracle's",
        "run 3 less run 2", "run 1 less run 2"}},
      {Fault::kAdjustmentOff, "E33", {"run 1: measured"}},
      {Fault::kMeasurementOff, "E34", {"reserved with 8", "reserved with 10", "reserved with 12"}},
      {Fault::kMeasurementOff,
       "E35",
       {"E = 95 %: measured", "E = 95 %: measured of", "E = 80 %: measured",
        "admitted with 80 % less"}},
      {Fault::kAdjustmentOff, "E35", {"E = 95 %: measured"}},
      {Fault::kToleranceZero,
       "E19",
       {"without pauses: mean with tolerance 5 %", "without pauses: rate of the throughput disk"}},
      {Fault::kTimeUncounted, "E18", {"area where 75 % are in time"}},
      {Fault::kTimeUncounted, "E15", {"25 % disk, requests/s, locality 35 %"}},
      {Fault::kTimeUncounted, "E58", {"25 % disk, requests/s, neighbour"}},
      {Fault::kTimeUncounted, "E17", {"25 % disk: part"}},
      {Fault::kSpareCharged,
       "E13",
       {"spare time leaves A's clock", "75 % disk, after ten seconds alone"}},
      {Fault::kWeightsFrozen, "E21", {"array under BAA"}},
      {Fault::kWeightsFrozen,
       "E24",
       {"array under the loop's DRF, IOPS, client 1", "array under the loop's BAA, IOPS, client 1",
        "array under the loop's BAA, IOPS, client 2", "array under the loop's DRF, SSD busy",
        "array under the loop's BAA, SSD busy", "client 2 under BAA"}},
      {Fault::kWindowShort, "E24", {"array under the loop's BAA"}},
      {Fault::kWeightsFrozen,
       "E25",
       {"array under the loop's DRF, IOPS, client 1", "array under the loop's BAA, IOPS, client 3",
        "array under the loop's BAA, SSD busy", "BAA over DRF in all"}},
      {Fault::kWeightsFrozen, "E26", {"client 2, IOPS, 620-900 s", "alarm only: total"}},
      {Fault::kWeightsFrozen,
       "E28",
       {"SSD busy, BAA minus DRF", "BAA over DRF in all", "DRF over FQ in all",
        "array under BAA, total", "array under the loop's BAA, IOPS, client 1"}},
      {Fault::kWeightsFrozen, "E30b", {"table 3, TOTAL-DSFQ"}},
  };
  return mutations;
}

// Whether some check whose name begins so fails.
bool Fails(const SimRun& run, std::string_view name) {
  return std::any_of(run.checks().begin(), run.checks().end(), [name](const Check& check) {
    return check.name.starts_with(name) && !check.pass();
  });
}

void ExpectAllPass(const char* id, uint64_t seed) {
  const Experiment* experiment = FindExperiment(id);
  ASSERT_NE(experiment, nullptr) << id;
  SimRun whole(seed);
  experiment->run(whole);
  for (const Check& check : whole.checks()) {
    EXPECT_TRUE(check.pass()) << id << ": " << check.name << ": " << check.measured;
  }
}

class MutationTest : public ::testing::TestWithParam<size_t> {};

TEST_P(MutationTest, IsCaughtByItsChecks) {
  const Mutation& mutation = Mutations()[GetParam()];
  const Experiment* experiment = FindExperiment(mutation.experiment);
  ASSERT_NE(experiment, nullptr) << mutation.experiment;
  SimRun broken(1, mutation.fault);
  experiment->run(broken);
  for (std::string_view check : mutation.checks) {
    EXPECT_TRUE(Fails(broken, check))
        << mutation.experiment << " with " << ToText(mutation.fault) << ": " << check;
  }
}
INSTANTIATE_TEST_SUITE_P(Planted, MutationTest, ::testing::Range<size_t>(0, Mutations().size()));

TEST(MutationsTest, EveryFaultIsInTheList) {
  for (Fault fault : AllFaults()) {
    EXPECT_TRUE(std::any_of(Mutations().begin(), Mutations().end(), [fault](const Mutation& m) {
      return m.fault == fault;
    })) << ToText(fault);
  }
}

TEST(MutationsTest, WholeMechanismsPassWithAnotherSeed) {
  for (const char* id : {"E13", "E14", "E15", "E16", "E17", "E19", "E20", "E21", "E22", "E23",
                         "E24", "E25", "E27", "E28", "E29"}) {
    ExpectAllPass(id, 7);
  }
}

TEST(FaultTest, WordsAreReadBack) {
  for (Fault fault : AllFaults()) EXPECT_EQ(ParseFault(ToText(fault)), fault);
  EXPECT_EQ(ParseFault("no-such-fault"), Fault::kNone);
}

// Everything that an experiment says, bit for bit.
std::vector<double> Numbers(const char* id, uint64_t seed) {
  SimRun run(seed);
  FindExperiment(id)->run(run);
  std::vector<double> numbers;
  for (const Check& check : run.checks()) numbers.push_back(check.measured);
  for (const Figure& figure : run.figures()) {
    for (const Curve& curve : figure.curves) {
      numbers.insert(numbers.end(), curve.x.begin(), curve.x.end());
      numbers.insert(numbers.end(), curve.y.begin(), curve.y.end());
    }
  }
  return numbers;
}

// One experiment of each topic; tools/test --all compares the bytes of all of them.
TEST(RepeatTest, ASeedGivesTheSameNumbersBitForBit) {
  for (const char* id :
       {"E2", "E3", "E8", "E16", "E19", "E28", "E33", "E36", "E42", "E52", "E53"}) {
    EXPECT_EQ(Numbers(id, 7), Numbers(id, 7)) << id;
  }
  EXPECT_NE(Numbers("E8", 7), Numbers("E8", 8));
}

TEST(RegistryTest, NumbersAreUniqueAndInOrder) {
  std::set<std::string> ids;
  for (const Experiment& experiment : AllExperiments()) {
    EXPECT_TRUE(ids.insert(experiment.id).second) << experiment.id;
    EXPECT_FALSE(experiment.title.empty() || experiment.source.empty() || experiment.about.empty())
        << experiment.id;
  }
  EXPECT_EQ(FindExperiment("E1000"), nullptr);
}

}  // namespace
}  // namespace weir::sim
