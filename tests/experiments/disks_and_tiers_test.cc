// The experiments of virtual disks and of BAA: they pass, and they notice when the mechanism that
// they are about is broken.
#include <gtest/gtest.h>

#include <string_view>

#include "tools/sim/experiment.h"

namespace weir::sim {
namespace {

using SimRun = Run;  // within a test, Run is gtest's own

struct Mutation {
  Fault fault;
  const char* experiment;
  const char* check;  // that must fail, or the beginning of its name
};

constexpr Mutation kMutations[] = {
    {Fault::kSpareCharged, "E13", "spare time leaves A's clock"},
    {Fault::kSpareCharged, "E13", "75 % disk, after ten seconds alone"},
    {Fault::kToleranceZero, "E19", "without pauses: mean with tolerance 5 %"},
    {Fault::kToleranceZero, "E19", "without pauses: rate of the throughput disk"},
    {Fault::kWeightsFrozen, "E21", "array under BAA"},
    {Fault::kWeightsFrozen, "E24", "array under BAA, SSD busy"},
    {Fault::kWeightsFrozen, "E26", "client 2, IOPS, 620-900 s"},
    {Fault::kWeightsFrozen, "E26", "alarm only: total"},
    {Fault::kWeightsFrozen, "E30b", "table 3, TOTAL-DSFQ"},
    {Fault::kDelayOff, "E30b", "example V, TOTAL-DSFQ"},
};

// Whether some check whose name begins so fails.
bool Fails(const Run& run, std::string_view name) {
  for (const Check& check : run.checks()) {
    if (check.name.starts_with(name) && !check.pass()) return true;
  }
  return false;
}

TEST(DisksAndTiersTest, EveryBrokenMechanismIsNoticedByItsCheck) {
  for (const Mutation& mutation : kMutations) {
    const Experiment* experiment = FindExperiment(mutation.experiment);
    ASSERT_NE(experiment, nullptr) << mutation.experiment;
    SimRun broken(1, mutation.fault);
    experiment->run(broken);
    EXPECT_TRUE(Fails(broken, mutation.check))
        << mutation.experiment << " with " << ToText(mutation.fault) << ": " << mutation.check;
  }
}

TEST(DisksAndTiersTest, WholeMechanismsPassWithAnotherSeed) {
  for (const char* id : {"E13", "E14", "E15", "E16", "E17", "E19", "E20", "E21", "E22", "E23",
                         "E24", "E25", "E27", "E28", "E29"}) {
    const Experiment* experiment = FindExperiment(id);
    ASSERT_NE(experiment, nullptr) << id;
    SimRun run(7);
    experiment->run(run);
    for (const Check& check : run.checks()) {
      EXPECT_TRUE(check.pass()) << id << ": " << check.name << ": " << check.measured;
    }
  }
}

}  // namespace
}  // namespace weir::sim
