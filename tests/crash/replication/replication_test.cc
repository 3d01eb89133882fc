// Goal: whatever happens to members, leaders, clocks and the network, nothing acknowledged is lost,
// no read goes back, nothing is done twice, what was refused has no effect, and in the end all
// members are equal.
// Method: replication.h, seed after seed; --seeds N (or WEIR_CRASH_POINTS=<n>) says how many.
// TEST_SEED=<n> TRACE=<file> writes down what happens under one seed.
#include "tests/crash/replication/replication.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/testing/seed.h"

namespace weir::crash::replication {
namespace {

uint64_t seeds = 500;

// A failed check ends the process: the seed must be known then too.
std::atomic<uint64_t> running_seed{0};
extern "C" void NameTheReplicationSeed(int signal) {
  std::fprintf(stderr, "killed under TEST_SEED=%llu\n",
               static_cast<unsigned long long>(running_seed.load()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

RunOutcome RunSeed(const RunOptions& options) {
  running_seed = options.seed;
  return RunReplication(options);
}

TEST(ReplicationTest, NothingIsLostStaleDoubledOrUnequal) {
  const uint64_t base = weir::testing::TestSeed(1);
  const char* path = std::getenv("TRACE");
  std::ofstream file(path != nullptr ? path : "/dev/null");
  RunOutcome total;
  uint64_t failures = 0;
  for (uint64_t i = 0; i < (path != nullptr ? 1 : seeds) && failures < 10; ++i) {
    RunOptions options;
    options.seed = base + i;
    if (path != nullptr) options.trace = [&](const std::string& line) { file << line << "\n"; };
    const RunOutcome outcome = RunSeed(options);
    EXPECT_EQ(outcome.wrong, "") << "TEST_SEED=" << options.seed;
    failures += outcome.wrong.empty() ? 0 : 1;
    total.acknowledged += outcome.acknowledged;
    total.refused += outcome.refused;
    total.reads += outcome.reads;
    total.crashes += outcome.crashes;
    total.chains += outcome.chains;
    total.messages += outcome.messages;
  }
  std::printf(
      "%llu changes acknowledged, %llu refused, %llu reads, %llu crashes, %llu changes of "
      "chains, %llu messages\n",
      static_cast<unsigned long long>(total.acknowledged),
      static_cast<unsigned long long>(total.refused), static_cast<unsigned long long>(total.reads),
      static_cast<unsigned long long>(total.crashes), static_cast<unsigned long long>(total.chains),
      static_cast<unsigned long long>(total.messages));
}

TEST(ReplicationTest, TheSameSeedGivesTheSameRun) {
  RunOptions options;
  options.seed = weir::testing::TestSeed(7);
  const RunOutcome first = RunSeed(options);
  const std::vector<std::unique_ptr<int>> elsewhere(1000);  // other addresses
  const RunOutcome second = RunSeed(options);
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.messages, second.messages);
  options.seed += 1;
  EXPECT_NE(RunSeed(options).digest, first.digest);
}

// `seed`: the first of the seeds of CI that has shown it, tried first.
struct Planted {
  Bug bug;
  uint64_t seed;
};
class PlantedReplicationBugTest : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedReplicationBugTest, IsCaught) {
  std::string wrong;
  for (uint64_t i = 0; i < 500 && wrong.empty(); ++i) {
    RunOptions options;
    options.seed = (GetParam().seed - 1 + i) % 500 + 1;
    options.bug = GetParam().bug;
    wrong = RunSeed(options).wrong;
    if (!wrong.empty() && i > 0) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed), wrong.c_str());
    }
  }
  EXPECT_NE(wrong, "");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlantedReplicationBugTest,
    ::testing::Values(Planted{Bug::kAckAtHead, 3}, Planted{Bug::kReadsPending, 1},
                      Planted{Bug::kNoWaitForLease, 141}, Planted{Bug::kNewerWins, 1},
                      Planted{Bug::kTombstonesDropped, 1}, Planted{Bug::kOpIdsNotCopied, 57},
                      Planted{Bug::kOldChainAccepted, 382}, Planted{Bug::kLeaseStopsInSuspend, 464},
                      Planted{Bug::kReadableTooEarly, 278}, Planted{Bug::kOneCredit, 43},
                      Planted{Bug::kDurableTooEarly, 21}, Planted{Bug::kBaseTooHigh, 12},
                      Planted{Bug::kRefusalNotOrdered, 163}));

}  // namespace
}  // namespace weir::crash::replication

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  using weir::crash::replication::seeds;
  if (const char* points = std::getenv("WEIR_CRASH_POINTS")) {
    seeds = std::strtoull(points, nullptr, 0);
  }
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = std::strtoull(argv[i + 1], nullptr, 0);
  }
  std::signal(SIGABRT, weir::crash::replication::NameTheReplicationSeed);
  std::signal(SIGSEGV, weir::crash::replication::NameTheReplicationSeed);
  return RUN_ALL_TESTS();
}
