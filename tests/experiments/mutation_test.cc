// Deliberately broken mechanisms: every fault of `weir-sim run --break` must turn the checks of
// these experiments red, and without the fault they are green. The list is the promise that the
// experiments measure what they say.
#include <gtest/gtest.h>

#include "tools/sim/experiment.h"

namespace weir::sim {
namespace {

struct Mutation {
  Fault fault;
  std::vector<std::string_view> caught_by;
};

const std::vector<Mutation>& Mutations() {
  static const std::vector<Mutation> mutations{
      {Fault::kDelayOff, {"E3", "E4", "E5", "E53"}},
      {Fault::kHistoryOff, {"E12"}},
      {Fault::kMinimumOff, {"E7"}},
      {Fault::kReservationOff, {"E42", "E46", "E53"}},
      {Fault::kGateOpen, {"E42", "E49"}},
      {Fault::kMaximizerOff, {"E43", "E44"}},
      {Fault::kLatestStartIgnored, {"E36"}},
      {Fault::kMeasurementOff, {"E33"}},
      {Fault::kToleranceZero, {"E19"}},
      {Fault::kWeightsFrozen, {"E26"}},
      {Fault::kSpareCharged, {"E13"}},
  };
  return mutations;
}

TEST(MutationTest, EveryPlantedFaultIsCaught) {
  for (const Mutation& mutation : Mutations()) {
    for (std::string_view id : mutation.caught_by) {
      const Experiment* experiment = FindExperiment(id);
      ASSERT_NE(experiment, nullptr) << id;
      sim::Run broken(1, mutation.fault);
      experiment->run(broken);
      EXPECT_FALSE(broken.pass()) << id << " does not notice " << ToText(mutation.fault);
    }
  }
}

TEST(MutationTest, WithoutAFaultTheSameExperimentsPass) {
  std::set<std::string_view> ids;
  for (const Mutation& mutation : Mutations()) {
    ids.insert(mutation.caught_by.begin(), mutation.caught_by.end());
  }
  for (std::string_view id : ids) {
    sim::Run whole(1);
    FindExperiment(id)->run(whole);
    for (const Check& check : whole.checks()) {
      EXPECT_TRUE(check.pass()) << id << ": " << check.name << " " << check.measured;
    }
  }
}

TEST(FaultTest, WordsAreReadBack) {
  for (Fault fault : AllFaults()) EXPECT_EQ(ParseFault(ToText(fault)), fault);
  EXPECT_EQ(ParseFault("no-such-fault"), Fault::kNone);
}

// A seed gives the same numbers, byte for byte; another seed others.
TEST(RepeatTest, ASeedGivesTheSameNumbers) {
  const auto numbers = [](uint64_t seed) {
    sim::Run run(seed);
    FindExperiment("E8")->run(run);
    std::vector<double> measured;
    for (const Check& check : run.checks()) measured.push_back(check.measured);
    return measured;
  };
  EXPECT_EQ(numbers(7), numbers(7));
  EXPECT_NE(numbers(7), numbers(8));
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
