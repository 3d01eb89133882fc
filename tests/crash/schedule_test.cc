// The store against a trivial one in memory, over seeded schedules of operations, power losses,
// torn and lost writes, errors, stalls, a full disk and bit rot; after each life the checker must
// find nothing and every block must be accounted for. WEIR_CRASH_POINTS=<n>: so many schedules.
#include "tests/crash/schedule.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "common/testing/seed.h"

namespace weir::osd::testing {
namespace {

// A few at a time: RocksDB rests after an error of its background work.
constexpr int kParallel = 8;

uint64_t Schedules() {
  const char* text = std::getenv("WEIR_CRASH_POINTS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 120;
}

// Runs until one is wrong; says which.
std::string RunMany(uint64_t base, uint64_t count, Bug bug, uint64_t* operations) {
  std::atomic<uint64_t> next{0}, done{0};
  std::mutex mutex;
  std::string wrong;
  std::vector<std::thread> threads;
  for (int t = 0; t < kParallel; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = next++; i < count; i = next++) {
        const ScheduleOutcome outcome = RunSchedule({base + i, bug});
        done += outcome.operations;
        if (outcome.wrong.empty()) continue;
        const std::lock_guard lock(mutex);
        wrong = "TEST_SEED=" + std::to_string(base + i) + ": " + outcome.wrong;
        next = count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (operations != nullptr) *operations = done;
  return wrong;
}

TEST(ScheduleTest, HoldsWhatItAcknowledgedAndAccountsForEveryBlock) {
  uint64_t operations = 0;
  EXPECT_EQ(RunMany(weir::testing::TestSeed(1000), Schedules(), Bug::kNone, &operations), "");
  // The schedules must reach into the work, not only into the opening.
  EXPECT_GT(operations, Schedules() * 50);
}

// Goal: the test above would notice. Method: the same schedules around a store with a bug.
class PlantedBugTest : public ::testing::TestWithParam<Bug> {};

TEST_P(PlantedBugTest, IsCaught) {
  EXPECT_NE(RunMany(weir::testing::TestSeed(5000), 200, GetParam(), nullptr), "");
}

std::string NameOf(const ::testing::TestParamInfo<Bug>& info) {
  switch (info.param) {
    case Bug::kMissingFlush:
      return "MissingFlush";
    case Bug::kWrongOrder:
      return "WrongOrder";
    case Bug::kMissingChecksum:
      return "MissingChecksum";
    case Bug::kLeak:
      return "Leak";
    case Bug::kNone:
      break;
  }
  return "None";
}

INSTANTIATE_TEST_SUITE_P(Kinds, PlantedBugTest,
                         ::testing::Values(Bug::kMissingFlush, Bug::kWrongOrder,
                                           Bug::kMissingChecksum, Bug::kLeak),
                         NameOf);

}  // namespace
}  // namespace weir::osd::testing
