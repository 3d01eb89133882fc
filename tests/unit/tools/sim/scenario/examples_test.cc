// The scenarios of tools/sim/examples: they run, and show what they say. Then what is wrong in the
// same keys.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tools/sim/scenario/scenario.h"

namespace weir::sim {
namespace {

using ::testing::HasSubstr;

// build/PRESET/bin holds the program that runs.
std::filesystem::path Examples() {
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (bin / "../../../tools/sim/examples").lexically_normal();
}

std::string TextOf(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(Examples() / name).rdbuf();
  return text.str();
}

// The example with one text in place of another, beside the example's own files.
Scenario Example(const std::string& name, const std::string& from = "",
                 const std::string& to = "") {
  std::string text = TextOf(name);
  if (!from.empty()) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  }
  const auto scenario = ParseScenario(text, (Examples() / name).string());
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.ok() ? *scenario : Scenario{};
}

std::string ErrorWith(const std::string& name, const std::string& from, const std::string& to) {
  std::string text = TextOf(name);
  EXPECT_NE(text.find(from), std::string::npos) << from;
  text.replace(text.find(from), from.size(), to);
  const auto scenario = ParseScenario(text, (Examples() / name).string());
  return scenario.ok() ? "no error" : scenario.status().message();
}

// Of the last half of the windows.
double LateIops(const ScenarioResult::ClassResult& result) {
  const std::vector<double>& all = result.all.iops;
  return Mean({all.begin() + static_cast<long>(all.size() / 2), all.end()});
}

double MostMiBps(const ScenarioResult& result) {
  const std::vector<double>& all = result.classes[0].all.bytes_per_s;
  return *std::max_element(all.begin(), all.end()) / (1 << 20);
}

TEST(ExamplesTest, AllOfThemAreTestedHere) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(Examples())) {
    if (entry.is_regular_file()) found.insert(entry.path().filename());
  }
  EXPECT_EQ(found, (std::set<std::string>{"cvc.toml", "limits.toml", "measured_admission.toml",
                                          "tiers.toml", "trace_msr.toml", "trace_spc.toml"}));
}

// BAA, example I: 100 and 500 requests/s fill both tiers; by weight alone 166.7 each leave flash
// half idle.
TEST(ExamplesTest, TiersAreDividedByTheLoop) {
  const ScenarioResult baa = RunScenario(Example("tiers.toml"));
  EXPECT_NEAR(LateIops(baa.classes[0]), 100, 5);
  EXPECT_NEAR(LateIops(baa.classes[1]), 500, 25);
  ASSERT_EQ(baa.devices[0].tiers.size(), 2u);
  EXPECT_EQ(baa.devices[0].tiers[1].name, "ssd");
  const ScenarioResult fair =
      RunScenario(Example("tiers.toml", "allocation = \"baa\"", "allocation = \"fair\""));
  EXPECT_NEAR(LateIops(fair.classes[0]), 166.7, 10);
  EXPECT_NEAR(LateIops(fair.classes[1]), 166.7, 10);
  EXPECT_LT(fair.devices[0].tiers[1].busy, .55);
}

TEST(ExamplesTest, MeasurementAdmitsWhatTheWorstCaseRefuses) {
  const ScenarioResult result = RunScenario(Example("measured_admission.toml"));
  ASSERT_EQ(result.admissions.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(result.admissions[i].admitted, i != 7) << i;
  EXPECT_THAT(result.admissions[7].why, HasSubstr("90 of 100 requests/s already promised"));
  EXPECT_TRUE(result.admissions[8].measured);
  EXPECT_LT(result.admissions[8].needed, 10);
  // Who was refused sends nothing; who was admitted nothing before.
  ASSERT_EQ(result.classes.size(), 8u);
  EXPECT_EQ(result.classes[7].name, "t9");
  EXPECT_EQ(result.classes[7].all.iops[20], 0);
  EXPECT_GT(LateIops(result.classes[7]), 1);
  for (const auto& one : result.classes) EXPECT_LT(one.p99_us, 399'000) << one.name;
}

// Asked at the beginning there is nothing measured: the worst case decides.
TEST(ExamplesTest, MeasurementWantsSomethingMeasured) {
  const ScenarioResult result =
      RunScenario(Example("measured_admission.toml", "asks = \"210s\"", "asks = \"1s\""));
  const auto& early = result.admissions[7];  // t8 asks after it
  EXPECT_EQ(early.name, "t9");
  EXPECT_FALSE(early.admitted);
  EXPECT_FALSE(early.measured);
}

// Requests per second of the disk: in the order of finish times least, then with runs of one, then
// with runs of any length.
TEST(ExamplesTest, CvcHasItsOptions) {
  const auto served = [](const std::string& from, const std::string& to) {
    double sum = 0;
    for (const auto& one : RunScenario(Example("cvc.toml", from, to)).classes) sum += one.mean_iops;
    return sum;
  };
  const double one = served("", "");
  EXPECT_GT(one, 1.1 * served("profile = \"cvc\"", "profile = \"vc\""));
  EXPECT_GT(served("\nrun_max = 1", "\nrun_max = 0"), 1.1 * one);
  EXPECT_EQ(Example("cvc.toml").scheduler.cvc.candidates, 4u);
  EXPECT_EQ(Example("cvc.toml").scheduler.cvc.fixed_estimate, std::chrono::milliseconds(13));
  EXPECT_FALSE(
      Example("cvc.toml", "late_mode = true", "late_mode = false").scheduler.cvc.late_mode);
}

// A two-hundredth and a request more at most (client/qos/limit_window.h).
TEST(ExamplesTest, MountsHoldLimits) {
  EXPECT_LE(MostMiBps(RunScenario(Example("limits.toml"))), 30 * 1.005 + 1.0 / 16);
  EXPECT_GT(MostMiBps(RunScenario(Example("limits.toml", "\"mounts\"", "\"osds\""))), 31);
}

TEST(ExamplesTest, TracesAreReplayed) {
  const ScenarioResult spc = RunScenario(Example("trace_spc.toml"));
  EXPECT_NEAR(spc.classes[0].mean_iops * 4, 30, 1e-6);  // those of unit 1
  EXPECT_GT(spc.classes[1].mean_iops, 10);
  const ScenarioResult msr = RunScenario(Example("trace_msr.toml"));
  EXPECT_NEAR(msr.classes[0].mean_iops * 4, 32, 1e-6);
  EXPECT_NEAR(msr.classes[0].mean_bytes_per_s * 4, 606'208, 1e-6);
}

TEST(ExamplesTest, WrongOnesSayWhy) {
  EXPECT_THAT(ErrorWith("tiers.toml", "tiers = [0.5, 0.5]", "tiers = [1]"),
              HasSubstr("'tiers' of workload 1: must be 2 numbers, not below 0"));
  EXPECT_THAT(ErrorWith("tiers.toml", "iops = 100,", "iop = 100,"),
              HasSubstr("tier 1 of device 1: unknown key 'iop', the nearest is 'iops'"));
  EXPECT_THAT(ErrorWith("tiers.toml", "allocation = \"baa\"", "allocation = \"best\""),
              HasSubstr("there is: baa, drf, fair"));
  EXPECT_THAT(ErrorWith("limits.toml", "rate = \"60MiB/s\"", "tiers = [{}]"),
              HasSubstr("'tiers' of device 1: must be 2 to"));
  EXPECT_THAT(ErrorWith("measured_admission.toml", "iops_max = 100", ""),
              HasSubstr("'admission' of class 1: needs what a device can do"));
  EXPECT_THAT(ErrorWith("cvc.toml", "iops = 4\n", "iops = 4\nasks = \"1s\"\n"),
              HasSubstr("'asks' of class 1: needs an admission"));
  EXPECT_THAT(ErrorWith("cvc.toml", "iops = 4\n", "admission = \"measured\"\n"),
              HasSubstr("'admission' of class 1: needs something to be admitted"));
  EXPECT_THAT(ErrorWith("cvc.toml", "\"13ms\"", "\"0s\""),
              HasSubstr("'service_estimate' of scheduler: must be longer than nothing"));
  EXPECT_THAT(ErrorWith("trace_spc.toml", "unit = 1", "unit = 7"), HasSubstr("has no requests"));
  EXPECT_THAT(ErrorWith("trace_msr.toml", "\"msr\"", "\"spc\""),
              HasSubstr("'trace' of workload 1"));
  EXPECT_THAT(ErrorWith("trace_msr.toml", "\"msr\"", "\"csv\""),
              HasSubstr("there is: spc, msr, fio"));
}

}  // namespace
}  // namespace weir::sim
