// Scenarios as people write them, right and wrong.
#include "tools/sim/scenario/scenario.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::sim {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] = R"(
duration = "10s"
[[device]]
rate = "60MiB/s"
[scheduler]
profile = "odis"
token_rate = "40MiB/s"
best_effort_min = "0"
maximizer = false
[[class]]
name = "gold"
reservation = "30MiB/s"
[[class]]
name = "web"
[[workload]]
class = "gold"
size = "512KiB"
start = "5s"
[[workload]]
class = "web"
threads = 16
size = ["256KiB", "512KiB"]
)";

std::string ErrorOf(const std::string& text) {
  const auto scenario = ParseScenario(text, "my.toml");
  return scenario.ok() ? "no error" : scenario.status().message();
}

constexpr char kDevice[] = "[[device]]\n";
constexpr char kWorkload[] = "[[workload]]\n";

TEST(ScenarioTest, RunsAndGivesTheSameEveryTime) {
  const auto scenario = ParseScenario(kGood, "my.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  const ScenarioResult result = RunScenario(*scenario);
  ASSERT_EQ(result.classes.size(), 2u);
  EXPECT_EQ(result.classes[0].name, "gold");
  ASSERT_EQ(result.classes[0].all.bytes_per_s.size(), 10u);
  EXPECT_EQ(result.classes[0].all.bytes_per_s[3], 0);  // it has not started
  EXPECT_NEAR(result.classes[0].all.bytes_per_s[8], 30 << 20, 1 << 20);
  EXPECT_NEAR(result.classes[1].all.bytes_per_s[8], 10 << 20, 1 << 20);
  EXPECT_EQ(RunScenario(*scenario).classes[1].all.bytes_per_s, result.classes[1].all.bytes_per_s);
}

// A virtual disk that is read at random beside one that is read in order: each has its part of the
// device's time.
TEST(ScenarioTest, ClassesMayBeVirtualDisks) {
  const auto scenario = ParseScenario(R"(
duration = "20s"
[[device]]
model = "hdd"
disk = "st34501n"
[scheduler]
profile = "vd"
[[class]]
name = "ordered"
type = "throughput"
peak = 0.75
throughput = "1MiB/s"
[[class]]
name = "random"
type = "latency"
peak = 0.25
latency = "200ms"
[[workload]]
class = "ordered"
locality = 1
reads = 1
[[workload]]
class = "random"
reads = 1
size = "4KiB"
)",
                                      "my.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  EXPECT_EQ(scenario->classes[1].disk.type, ClassType::kLatency);
  EXPECT_EQ(scenario->classes[1].service.bound, std::chrono::milliseconds(200));
  const ScenarioResult result = RunScenario(*scenario);
  EXPECT_GT(result.classes[0].mean_bytes_per_s, 5 << 20);
  EXPECT_GT(result.classes[1].mean_iops, 20);
}

TEST(ScenarioTest, WhatWouldBeIgnoredIsAnError) {
  const auto workload = [](const std::string& keys) {
    return ErrorOf("duration = \"10s\"\n[[device]]\n[[class]]\nname = \"a\"\n[[workload]]\n" +
                   keys);
  };
  EXPECT_THAT(workload("threads = 4\narrivals = 100"), HasSubstr("'threads' of workload 1: is of"));
  EXPECT_THAT(workload("start = \"10s\""), HasSubstr("'start' of workload 1: must be before"));
  EXPECT_THAT(workload("class = \"a\"\ntransaction = 1"), HasSubstr("has no transactions"));
  EXPECT_THAT(ErrorOf("[[device]]\n[[class]]\nname = \"best-effort\"\n[[workload]]\n"),
              HasSubstr("'name' of class 1: 'best-effort' is always there"));
}

TEST(ScenarioTest, TransactionsSharePromises) {
  std::string text = R"(
[[device]]
rate = "60MiB/s"
[scheduler]
profile = "odis"
token_rate = "40MiB/s"
maximizer = false
[[class]]
name = "gold"
reservation = "20MiB/s"
transactions = ["15MiB/s", "4MiB/s"]
)";
  for (const char* load : {"transaction = 1", "transaction = 2", ""}) {
    text += std::string("[[workload]]\nclass = \"gold\"\n") + load + "\n";
  }
  const auto scenario = ParseScenario(text, "my.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  ASSERT_EQ(scenario->classes[0].transactions.size(), 2u);
  EXPECT_EQ(scenario->classes[0].transactions[1].bytes_per_s, 4u << 20);
  EXPECT_EQ(scenario->workloads[1].options.transaction, 2u);
  EXPECT_EQ(RunScenario(*scenario).classes.size(), 1u);
}

TEST(ScenarioTest, WrongContractsSayWhatTheyLack) {
  const auto with = [](const std::string& keys) {
    return ErrorOf("[[device]]\n[[class]]\nname = \"a\"\n" + keys + "\n[[workload]]\n");
  };
  EXPECT_THAT(with("peak = 0.5"), HasSubstr("'peak' of class 1: needs a type"));
  EXPECT_THAT(with("type = \"latency\"\npeak = 0.5"), HasSubstr("needs a bound (latency)"));
  EXPECT_THAT(with("type = \"rent\""), HasSubstr("there is: best-effort, rent-a-disk"));
  EXPECT_THAT(with("max_pending = 3"), HasSubstr("needs a latency"));
  EXPECT_THAT(with("transactions = [\"1MiB/s\"]"), HasSubstr("needs a reservation"));
  EXPECT_THAT(with("reservation = \"2MiB/s\"\ntransactions = [\"1MiB/s\", \"2MiB/s\"]"),
              HasSubstr("transaction 2 of 'a' wants 2"));
}

TEST(ScenarioTest, TheExampleOfTheHelpRuns) {
  const std::string help = ScenarioHelp();
  const auto scenario = ParseScenario(help.substr(help.find("Example:") + 8), "help");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  EXPECT_EQ(scenario->workloads.size(), 2u);
}

TEST(ScenarioTest, EveryKindOfDeviceAndWorkload) {
  const std::string directory = ::testing::TempDir() + "/scenario_test";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/times.txt") << "0.001\n0.002\n";
  std::ofstream(directory + "/web.spc") << "0,1,4096,R,0.5\n0,9,4096,W,0.7\n";
  std::ofstream(directory + "/all.toml") << R"(
duration = "2s"
window = "500ms"
[[device]]
model = "slots"
slots = 4
count = 2
[[device]]
model = "hdd"
disk = "6y080p0"
[[device]]
model = "hdd"
disks = 4
[[device]]
model = "ssd"
name = "fast"
[[device]]
model = "recorded"
file = "times.txt"
[scheduler]
sharing = "hybrid-h"
depth = 8
[[class]]
name = "gold"
weight = 2
limit = "50MiB/s"
iops = 100
[[workload]]
class = "gold"
devices = [0, 1]
shares = [0.8, 0.2]
coordinators = 3
on = "200ms"
off = "300ms"
[[workload]]
devices = [4]
arrivals = 500
burstiness = 0.75
size = "4KiB"
reads = 1.0
zipf = 0.9
[[workload]]
devices = [2]
low = 1
high = 5
period = "1s"
locality = 1
[[workload]]
devices = [3]
stand_in = "financial"
speed = 2
[[workload]]
devices = [5]
trace = "web.spc"
[[workload]]
pace = "1MiB/s"
stop = "1s"
)";
  const auto scenario = LoadScenario(directory + "/all.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  ASSERT_EQ(scenario->devices.size(), 6u);
  EXPECT_EQ(scenario->devices[4].name, "fast");
  const ScenarioResult result = RunScenario(*scenario);
  for (const auto& device : result.devices) EXPECT_GT(device.busy, 0) << device.name;
  EXPECT_EQ(result.devices[5].all.iops, (std::vector<double>{0, 4, 0, 0}));
}

TEST(ScenarioTest, WrongOnesSayWhichKeyAndWhy) {
  const std::string both = std::string(kDevice) + kWorkload;
  EXPECT_EQ(ErrorOf("duration = \"soon\"\n" + both).substr(0, 43),
            "my.toml:1: 'duration' of the scenario: 'soo");
  EXPECT_THAT(ErrorOf("nonsense = 1\n" + both), HasSubstr("my.toml:1: the scenario: unknown key "
                                                          "'nonsense'; there are class, device"));
  EXPECT_THAT(ErrorOf("durations = \"1s\"\n" + both),
              HasSubstr("unknown key 'durations', the nearest is 'duration'; there are class"));
  EXPECT_THAT(
      ErrorOf("[[device]]\nmodel = \"tape\"\n"),
      HasSubstr("my.toml:2: 'model' of device 1: 'tape' is unknown (there is: flat, slots"));
  EXPECT_THAT(ErrorOf("[[device]]\nrate = 5.5\n"),
              HasSubstr("'rate' of device 1: must be a rate in quotes, as \"40MiB/s\""));
  EXPECT_THAT(ErrorOf("[device]\nrate = \"1MiB\"\n"),
              HasSubstr("my.toml:1: 'device' must be written [[device]], once for each"));
  EXPECT_EQ(ErrorOf(kWorkload), "my.toml: there is no [[device]]");
  EXPECT_EQ(ErrorOf(kDevice), "my.toml: there is no [[workload]]");
  EXPECT_THAT(
      ErrorOf(both + "class = \"gold\"\n"),
      HasSubstr("my.toml:3: 'class' of workload 1: 'gold' is unknown (there is: best-effort)"));
  EXPECT_THAT(ErrorOf(both + "devices = [3]\n"),
              HasSubstr("there is no device 3; there are 0 to 0"));
  EXPECT_THAT(ErrorOf(both + "reads = 2\n"), HasSubstr("'reads' of workload 1: 2 is not within"));
  EXPECT_THAT(ErrorOf(both + "size = [\"2KiB\", \"1KiB\"]\n"), HasSubstr("the least and the most"));
  EXPECT_THAT(ErrorOf(both + "trace = \"none.spc\"\n"), HasSubstr("there is no trace file"));
  EXPECT_THAT(ErrorOf(both + "arrivals = 5\non = \"1s\"\n"), HasSubstr("only a closed loop has"));
  EXPECT_THAT(ErrorOf(both + "burstiness = 0.7\n"), HasSubstr("needs arrivals"));
  EXPECT_THAT(ErrorOf("[[class]]\nname = \"a\"\nscope = \"osd\"\n" + both),
              HasSubstr("'scope' of class 1: needs a reservation"));
  EXPECT_THAT(ErrorOf("[[class]]\nname = \"a\"\n[[class]]\nname = \"a\"\n" + both),
              HasSubstr("'name' of class 2: 'a' is there twice"));
  EXPECT_THAT(ErrorOf("[scheduler]\nprofile = \"golden\"\n" + both),
              HasSubstr("'profile' of scheduler: unknown profile 'golden' (there is: noqos"));
  EXPECT_THAT(ErrorOf("[scheduler]\nmaximizer = 3\n" + both), HasSubstr("must be true or false"));
  EXPECT_THAT(ErrorOf("x = = 1"), HasSubstr("my.toml:1: "));
  EXPECT_THAT(ErrorOf("window = \"1us\"\n" + both), HasSubstr("makes more than 100000 windows"));
  EXPECT_THAT(ErrorOf(both + "on = \"1ns\"\n"), HasSubstr("on and off must be at least 1ms"));
  EXPECT_THAT(ErrorOf(both + "arrivals = 1e9\n"), HasSubstr("is not within"));
  EXPECT_EQ(LoadScenario("/no/such.toml").status().message(),
            "there is no scenario file '/no/such.toml'");
}

// Scenarios with random lines changed: an answer each time, never an end of the program.
TEST(ScenarioTest, GarbageIsAnsweredToo) {
  const std::vector<std::string> values{"0",      "-1",    "1e300",  "\"\"",    "\"1KiB\"", "[]",
                                        "[1, 2]", "true",  "\"9d\"", "\"max\"", "{}",       "nan",
                                        "\"x\"",  "[[1]]", "inf",    "\"0\""};
  const std::vector<std::string> keys{
      "duration", "window",  "seed",   "rate",     "model", "slots",  "depth",
      "profile",  "weight",  "limit",  "iops",     "scope", "class",  "threads",
      "size",     "devices", "shares", "arrivals", "on",    "period", "stand_in",
      "trace",    "pace",    "stop",   "span",     "zipf"};
  Prng prng(11);
  int good = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> lines;
    std::istringstream in(kGood);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::string& line = lines[prng.Uniform(0, lines.size() - 1)];
    line =
        keys[prng.Uniform(0, keys.size() - 1)] + " = " + values[prng.Uniform(0, values.size() - 1)];
    std::string text;
    for (const std::string& one : lines) text += one + "\n";
    const auto scenario = ParseScenario(text, "my.toml");
    good += scenario.ok() ? 1 : 0;
    if (!scenario.ok()) {
      EXPECT_THAT(scenario.status().message(), HasSubstr("my.toml"));
    }
  }
  EXPECT_GT(good, 10);
  EXPECT_LT(good, 1500);
}

}  // namespace
}  // namespace weir::sim
