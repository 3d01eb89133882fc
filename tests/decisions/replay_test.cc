// The recordings of this folder, done again. README.md says what "the same" means, and what to do
// when a scheduler is meant to decide otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "osd/decisions/recording.h"
#include "osd/decisions/replay.h"
#include "osd/decisions/served.h"

namespace weir::osd {
namespace {

using Kind = Event::Kind;

// In the order of their names.
std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(WEIR_RECORDINGS)) {
    if (file.path().extension() == ".rec") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Event> Recorded(const std::string& name) {
  auto events = LoadRecording(std::string(WEIR_RECORDINGS) + "/" + name + ".rec");
  EXPECT_TRUE(events.ok()) << events.status().message();
  return events.ok() ? *events : std::vector<Event>();
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class RecordingTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordingTest, EveryDecisionComesOutAsRecorded) {
  const auto replayed = ReplayEvents(Recorded(GetParam()));
  ASSERT_TRUE(replayed.ok()) << replayed.status().message();
  EXPECT_GT(replayed->pulled, 50u);
  const auto& difference = replayed->difference;
  EXPECT_FALSE(difference) << "event " << difference->decision << " at " << difference->when.ns
                           << " ns: request " << difference->recorded << " was started, now "
                           << difference->chosen << " (0: none)";
}

// What a scheduler with other calls is compared by: this one differs in nothing.
TEST_P(RecordingTest, ClassesAreServedAsMuchWhenOnlyInputsAreGiven) {
  const std::vector<Event> events = Recorded(GetParam());
  const ServedGap gap = LargestGap(ServedOf(events), ServedOf(ReplayInputs(events)), kRequestsFree);
  EXPECT_EQ(gap.part, 0) << "class " << gap.id << " after " << ToSeconds(gap.at)
                         << " s: " << gap.recorded << " bytes recorded, now " << gap.replayed;
}

// The same events, with a copy of something that was set changed.
std::vector<Event> WithClasses(std::vector<Event> events,
                               const std::function<void(ClassSpec*)>& change) {
  for (Event& event : events) {
    if (event.spec == nullptr) continue;
    auto spec = std::make_shared<ClassSpec>(*event.spec);
    change(spec.get());
    event.spec = spec;
  }
  return events;
}
std::vector<Event> WithConfigs(std::vector<Event> events,
                               const std::function<void(SchedulerConfig*)>& change) {
  for (Event& event : events) {
    if (event.config == nullptr) continue;
    auto config = std::make_shared<SchedulerConfig>(*event.config);
    change(config.get());
    event.config = config;
  }
  return events;
}

bool DecidesOtherwise(const std::vector<Event>& events) {
  const auto replayed = ReplayEvents(events);
  return replayed.ok() && replayed->difference;
}
double Apart(const std::vector<Event>& recorded, const std::vector<Event>& changed) {
  return LargestGap(ServedOf(recorded), ServedOf(ReplayInputs(changed)), kRequestsFree).part;
}

TEST(PlantedTest, AnotherWeightIsSeen) {
  const std::vector<Event> events = Recorded("profile-dsfq-total");
  const auto changed = WithClasses(events, [](ClassSpec* spec) {
    if (spec->id == ClassId(16)) spec->weight /= 10;
  });
  EXPECT_TRUE(DecidesOtherwise(changed));
  EXPECT_GT(Apart(events, changed), .05);
}

TEST(PlantedTest, AnotherRateIsSeen) {
  const std::vector<Event> events = Recorded("promise-ends");
  const auto changed = WithConfigs(
      events, [](SchedulerConfig* config) { config->token_rate = config->token_rate / 10 * 9; });
  EXPECT_TRUE(DecidesOtherwise(changed));
  EXPECT_GT(Apart(events, changed), .05);
}

// The order on the disk moves no bytes from class to class, so only the strict replay sees it.
TEST(PlantedTest, AnotherOrderOnTheDiskIsSeen) {
  const std::vector<Event> events = Recorded("profile-odis");
  EXPECT_TRUE(DecidesOtherwise(WithConfigs(
      events, [](SchedulerConfig* config) { config->dispatch = DispatchKind::kFifo; })));
}

// What the recordings are for: nothing of the scheduler goes by that they do not pass.
TEST(CoverageTest, EveryBoxAndEveryCallIsInThem) {
  std::set<Kind> kinds;
  std::set<GuaranteeKind> guarantees;
  std::set<SurplusKind> surpluses;
  std::set<SharingKind> sharings;
  std::set<GateKind> gates;
  std::set<DispatchKind> dispatches;
  std::set<CostKind> costs;
  std::set<SpareCharge> spares;
  std::set<ReservationScope> scopes;
  std::set<ClassType> disks;
  uint64_t limits = 0, bounds = 0, transactions = 0, iops = 0, ends = 0, elsewhere = 0;
  for (const std::string& name : Names()) {
    for (const Event& event : Recorded(name)) {
      kinds.insert(event.kind);
      elsewhere += event.elsewhere > 0 ? 1 : 0;
      if (event.config != nullptr) {
        guarantees.insert(event.config->guarantee);
        surpluses.insert(event.config->surplus);
        sharings.insert(event.config->sharing);
        gates.insert(event.config->gate);
        dispatches.insert(event.config->dispatch);
        costs.insert(event.config->cost);
        spares.insert(event.config->spare);
      }
      if (event.spec == nullptr) continue;
      disks.insert(event.spec->disk.type);
      limits += event.spec->limit_bytes_per_s ? 1 : 0;
      bounds += event.spec->service.bound > Duration(0) ? 1 : 0;
      transactions += event.spec->transactions.size();
      ends += event.spec->reservation_ends ? 1 : 0;
      if (!event.spec->reservation) continue;
      scopes.insert(event.spec->reservation->scope);
      iops += event.spec->reservation->iops;
    }
  }
  EXPECT_EQ(kinds.size(), 14u);
  EXPECT_EQ(guarantees.size(), 2u);
  EXPECT_EQ(surpluses.size(), 4u);
  EXPECT_EQ(sharings.size(), 4u);
  EXPECT_EQ(gates.size(), 2u);
  EXPECT_EQ(dispatches.size(), 4u);
  EXPECT_EQ(costs.size(), 3u);
  EXPECT_EQ(spares.size(), 3u);
  EXPECT_EQ(scopes.size(), 2u);
  EXPECT_EQ(disks.size(), 4u);
  for (const uint64_t count : {limits, bounds, transactions, iops, ends, elsewhere}) {
    EXPECT_GT(count, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordingTest, ::testing::ValuesIn(Names()), TestName);

}  // namespace
}  // namespace weir::osd
