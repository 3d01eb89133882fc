// Deliberately broken mechanisms: every fault of `weir-sim run --break` must turn the checks below
// red, each in the experiment that is about it, and without the fault all checks there are green.
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
      // TABLE
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

TEST(MutationTest, EveryPlantedFaultIsCaughtByItsChecks) {
  for (const Mutation& mutation : Mutations()) {
    const Experiment* experiment = FindExperiment(mutation.experiment);
    ASSERT_NE(experiment, nullptr) << mutation.experiment;
    SimRun broken(1, mutation.fault);
    experiment->run(broken);
    for (std::string_view check : mutation.checks) {
      EXPECT_TRUE(Fails(broken, check))
          << mutation.experiment << " with " << ToText(mutation.fault) << ": " << check;
    }
  }
}

TEST(MutationTest, EveryFaultIsInTheList) {
  for (Fault fault : AllFaults()) {
    EXPECT_TRUE(std::any_of(Mutations().begin(), Mutations().end(), [fault](const Mutation& m) {
      return m.fault == fault;
    })) << ToText(fault);
  }
}

TEST(MutationTest, WithoutAFaultTheSameExperimentsPass) {
  std::set<std::string> ids;
  for (const Mutation& mutation : Mutations()) ids.insert(mutation.experiment);
  for (const std::string& id : ids) ExpectAllPass(id.c_str(), 1);
}

TEST(MutationTest, WholeMechanismsPassWithAnotherSeed) {
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
  for (const char* id : {"E1", "E2", "E3", "E5", "E8", "E13", "E16", "E19", "E24", "E28", "E33",
                         "E36", "E39", "E42", "E46", "E50", "E52", "E53", "E56"}) {
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
