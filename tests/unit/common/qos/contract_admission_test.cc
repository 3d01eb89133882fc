#include "common/qos/contract_admission.h"

#include <gmock/gmock.h>

#include "common/base/prng.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

ServiceContract Latency(Duration bound, double probability = 0.95, double iops = 0) {
  ServiceContract contract;
  contract.bound = bound;
  contract.probability = probability;
  contract.iops = iops;
  contract.max_pending = 14;
  return contract;
}

ServiceContract Rate(double iops) {
  ServiceContract contract;
  contract.iops = iops;
  return contract;
}

ServiceMeasures Measured(double service_part, double io_rate) {
  return {.service_part = [=](double e) { return service_part * e / 0.95; },
          .io_rate = [=](double /*x*/) { return io_rate; },
          .stable = true};
}

std::vector<AdmittedClass> Many(int count, const ServiceContract& contract, bool measured = true) {
  return std::vector<AdmittedClass>(static_cast<size_t>(count), {contract, measured});
}

TEST(ContractAdmissionTest, TheWorstCaseAdmitsFourOfTableOne) {
  const ServiceContract contract = Latency(120ms);  // 126.68 of 630 each
  EXPECT_TRUE(AdmitContract(Many(3, contract), contract, 630).admitted);
  const ContractDecision fifth = AdmitContract(Many(4, contract), contract, 630);
  EXPECT_FALSE(fifth.admitted);
  EXPECT_THAT(fifth.why, HasSubstr("507 of 630 requests/s already promised, this needs 127"));
  EXPECT_THAT(fifth.why, HasSubstr("largest that fits: 123"));
}

TEST(ContractAdmissionTest, MeasurementsAdmitThreeTimesAsMany) {
  const ServiceContract contract = Latency(120ms);  // 38.91 each with Q = .11
  EXPECT_TRUE(AdmitMeasured(Many(15, contract), contract, 630, Measured(0.11, 0)).admitted);
  EXPECT_FALSE(AdmitMeasured(Many(16, contract), contract, 630, Measured(0.11, 0)).admitted);
}

TEST(ContractAdmissionTest, WhatMeasurementAdmittedIsBeyondTheWorstCase) {
  const ServiceContract contract = Latency(120ms);
  const ContractDecision next = AdmitContract(Many(15, contract), contract, 630);
  EXPECT_FALSE(next.admitted);
  EXPECT_THAT(next.why, HasSubstr("may need 1900 requests/s, more than the 630"));
  EXPECT_THAT(next.why, HasSubstr("largest that fits: 0"));
}

TEST(ContractAdmissionTest, ThroughputBoundClassesCountAsMeasured) {
  const ContractDecision decision =
      AdmitMeasured(Many(4, Rate(100)), Latency(120ms), 630, Measured(0.11, 250));
  EXPECT_TRUE(decision.admitted);
  EXPECT_NEAR(decision.reserved, 38.91, 0.01);
  EXPECT_DOUBLE_EQ(decision.spare, 380);
  EXPECT_FALSE(decision.latency_bound.front());
  EXPECT_TRUE(decision.latency_bound.back());
}

// A20: nobody has seen what a new throughput-bound class does, so it is not free.
TEST(ContractAdmissionTest, AnUnmeasuredRateCountsInFull) {
  EXPECT_FALSE(AdmitMeasured({}, Rate(631), 630, Measured(0.11, 0)).admitted);
  EXPECT_TRUE(AdmitMeasured(Many(4, Rate(100)), Rate(300), 630, Measured(0.11, 300)).admitted);
  EXPECT_FALSE(
      AdmitMeasured(Many(4, Rate(100), false), Rate(300), 630, Measured(0.11, 0)).admitted);
}

TEST(ContractAdmissionTest, AnImpossibleBoundSaysSo) {
  const ContractDecision decision = AdmitContract({}, Latency(1ms), 630);
  EXPECT_FALSE(decision.admitted);
  EXPECT_THAT(decision.why, HasSubstr("a longer bound fits"));
}

TEST(ContractAdmissionTest, TheStrictestClassMayDecide) {
  const std::vector<AdmittedClass> strict = {{Latency(500ms, 0.99), true}};
  const ServiceMeasures measures{.service_part = [](double) { return 0.1; },
                                 .io_rate = [](double x) { return x > 0.97 ? 600 : 100; },
                                 .stable = true};
  EXPECT_TRUE(AdmitMeasured(strict, Latency(120ms, 0.9), 630, measures).admitted);
  EXPECT_FALSE(
      AdmitMeasured(strict, Latency(120ms, 0.9), 630, measures, {.strictest = true}).admitted);
}

TEST(ContractAdmissionTest, AllOsdsOrNone) {
  int asked = 0;
  const ContractDecision refused = AdmitOnAll(3, [&](size_t osd) {
    ++asked;
    ContractDecision decision;
    decision.admitted = osd != 1;
    return decision;
  });
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(asked, 2);
}

// I-23 and I-25 on random sets of classes.
TEST(ContractAdmissionTest, UnmeasuredIsAdditiveAndMoreLenientIsNeverRefused) {
  Prng prng(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<AdmittedClass> classes(prng.Uniform(0, 6));
    for (AdmittedClass& one : classes) {
      one.contract = Latency(std::chrono::milliseconds(prng.Uniform(20, 400)),
                             0.5 + 0.49 * prng.Real(), prng.Chance(0.5) ? 100 * prng.Real() : 0);
      one.measured = true;
    }
    ServiceContract newcomer =
        Latency(std::chrono::milliseconds(prng.Uniform(20, 400)), 0.5 + 0.49 * prng.Real());
    const ContractDecision additive = AdmitContract(classes, newcomer, 630);
    const ContractDecision unmeasured = AdmitMeasured(classes, newcomer, 630, {});
    ASSERT_EQ(additive.admitted, unmeasured.admitted);
    ASSERT_DOUBLE_EQ(additive.reserved, unmeasured.reserved);

    const ServiceMeasures measures{.service_part = [](double e) { return e * e * 0.5; },
                                   .io_rate = [](double x) { return 200 * x; },
                                   .stable = true};
    if (!AdmitMeasured(classes, newcomer, 630, measures).admitted) continue;
    ServiceContract lenient = newcomer;
    lenient.bound += std::chrono::milliseconds(prng.Uniform(0, 100));
    lenient.probability *= 0.5 + 0.5 * prng.Real();
    ASSERT_TRUE(AdmitMeasured(classes, lenient, 630, measures).admitted);
  }
}

// Our fit of the paper's table 3 (algorithms, E34): inherent 4.25 % of IOPSmax each, 8.4 % by (10).
TEST(ContractAdmissionTest, TableThreesReservationsFollowFromItsQuantiles) {
  const double quantiles[] = {.11, .14, .15, .19, .24, .30, .37, .49};
  const double table[] = {34, 38, 43, 47, 51, 55, 67};
  // With IOPSmax = 1000 a bound of 16/D + ... such that (10) gives 84: D = 15/84 + 1/1000.
  const ServiceContract contract = Latency(FromSeconds(15.0 / 84 + 1e-3), 0.95, 42.5);
  for (int n = 8; n <= 14; ++n) {
    const ServiceMeasures measures = Measured(quantiles[n - 8], 0);
    const ContractDecision decision =
        AdmitMeasured(Many(n - 1, contract, false), contract, 1000, measures);
    EXPECT_NEAR(decision.reserved / 10, table[n - 8], 0.02 * table[n - 8] + 0.5) << n;
  }
}

TEST(ContractAdmissionTest, EachClassThatWasNotMeasuredYetMayMoveTheMeasurement) {
  const ServiceContract contract = Latency(120ms);
  AdmissionOptions options;
  double last = 0;
  for (const size_t unmeasured : {0, 1, 2, 9}) {
    options.unmeasured = unmeasured;
    const auto found = AdmitMeasured(Many(5, contract), contract, 630, Measured(0.11, 0), options);
    EXPECT_GT(found.rates.back(), last);
    last = found.rates.back();
  }
  EXPECT_NEAR(last, 126.68, 0.01);  // the worst case, never more
}

TEST(ContractAdmissionTest, WhatIsPromisedInFullIsNotThereToBeMeasured) {
  const ServiceContract contract = Latency(120ms);
  AdmissionOptions options;
  options.taken = 600;
  EXPECT_FALSE(AdmitMeasured({}, contract, 630, Measured(0.11, 0), options).admitted);
  options.taken = 590;
  EXPECT_TRUE(AdmitMeasured({}, contract, 630, Measured(0.11, 0), options).admitted);
}

}  // namespace
}  // namespace weir
