// Goal: of what waits in a window leaves first whoever should, by flows and by users' parts.
// Method: requests join, and those that have left are answered one by one, the oldest first.
#include "client/remote/object_windows.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>

#include "common/testing/manual_clock.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using Departures = ObjectWindows::Departures;

class ObjectWindowsTest : public ::testing::Test {
 protected:
  void Start(ObjectWindows::Options options = {}) {
    flying_.clear();
    windows_.emplace(stamps_, meter_, std::move(options));
    SetMap(MapOf(1));
  }
  // Room for two requests, and no more for light ones.
  void StartWithTwo() {
    Start({.first_window_bytes = 2 << 20, .beyond_bytes = 0, .beyond_requests = 0});
  }
  void SetMap(const std::shared_ptr<const ClusterMap>& map) {
    Departures left;
    stamps_.SetMap(map);
    windows_->SetMap(map, clock_.Now(), &left);
    Fly(std::move(left));
  }
  // Class 16 is promised 100 MiB/s, of which user 2 has 80.
  static std::shared_ptr<ClusterMap> MapWithPart() {
    auto map = std::make_shared<ClusterMap>(*MapOf(1));
    ClassSpec& spec = map->classes[ClassId(16)].spec;
    spec.id = ClassId(16);
    spec.reservation = Reservation{.bytes_per_s = 100 << 20, .ends = {}};
    spec.reservation->users = {{.uid = 2, .bytes_per_s = 80 << 20}};
    return map;
  }
  void Join(Flow flow, uint64_t bytes = 1 << 20, uint32_t class_id = 16) {
    auto pending = std::make_shared<PendingOp>();
    pending->op.class_id = ClassId(class_id);
    pending->op.flow = std::move(flow);
    pending->op.length = bytes;
    pending->asked = clock_.Now();
    pending->osd = OsdId(0);
    pending->path = {OsdId(0)};
    Departures left;
    windows_->Join(std::move(pending), clock_.Now(), &left);
    Fly(std::move(left));
  }
  void Answer(const Result<ObjectOutcome>& result = ObjectOutcome()) {
    const ObjectWindows::Departure answered = std::move(flying_.front());
    flying_.pop_front();
    Departures left;
    auto& window = windows_->Back(answered.pending.get(), result, clock_.Now());
    windows_->TakeDepartures(window, clock_.Now(), &left);
    Fly(std::move(left));
  }
  void AnswerAll() {
    while (!flying_.empty()) Answer();
  }
  [[nodiscard]] uint32_t LastUser() const { return flying_.back().pending->op.flow.uid; }
  // How many of so many turns each user has, each after `pause`.
  std::map<uint32_t, int> Turns(int count, Duration pause = 0s) {
    std::map<uint32_t, int> of_user;
    for (int i = 0; i < count; ++i) {
      clock_.Advance(pause);
      Answer();
      ++of_user[LastUser()];
    }
    return of_user;
  }
  void Fly(Departures left) {
    for (auto& departure : left.requests) flying_.push_back(std::move(departure));
  }

  testing::ManualClock clock_;
  MountMeter meter_;
  ObjectStamps stamps_{0, 0};
  std::optional<ObjectWindows> windows_;
  std::deque<ObjectWindows::Departure> flying_;
};

// Goal: who waits for each answer does not stand behind what 64 writers of the same class have
// waiting here, and users share the window.
TEST_F(ObjectWindowsTest, ALightRequestLeavesAtOnceAndUsersTakeTurns) {
  Start({.first_window_bytes = 2 << 20});
  for (uint64_t i = 0; i < 64; ++i) Join({1, i});
  for (int i = 0; i < 8; ++i) Join({2, 1000});
  ASSERT_EQ(flying_.size(), 2u);
  Join({3, 2000}, 4096);
  ASSERT_EQ(flying_.size(), 3u);
  EXPECT_EQ(LastUser(), 3u);
  auto turns = Turns(14);
  EXPECT_NEAR(turns[1], turns[2], 2) << "64 writers and one";
}

// A user who is promised a part of the class's bandwidth does not wait for his share of the window.
TEST_F(ObjectWindowsTest, WhoIsBelowHisPartOfTheClassesPromiseLeavesFirst) {
  StartWithTwo();
  const auto map = MapWithPart();
  SetMap(map);
  for (const uint32_t user : {1, 2}) {
    for (int i = 0; i < 64; ++i) Join({user, user});
  }
  clock_.Advance(1s);
  EXPECT_EQ(Turns(10)[2], 8)
      << "so many MiB are saved; the other has waited for his share meanwhile";
  clock_.Advance(1s);
  map->classes[ClassId(16)].spec.reservation->users.clear();
  SetMap(std::make_shared<ClusterMap>(*map));
  EXPECT_LE(Turns(10)[2], 5);
}

// A mount that is served less than his part does not starve everybody else for it.
TEST_F(ObjectWindowsTest, WhoIsBelowHisPartLeavesTheOthersAnEighth) {
  StartWithTwo();
  SetMap(MapWithPart());
  for (const uint32_t user : {1, 2}) {
    for (int i = 0; i < 100; ++i) Join({user, user});
  }
  EXPECT_EQ(Turns(80, 1s)[1], 10);
}

// Who leaves first of one user with 64 writers and one with a single one, by kind of flows.
TEST_F(ObjectWindowsTest, TheKindOfFlowsSaysBetweenWhomAWindowIsShared) {
  const auto cgroup = std::make_shared<const std::string>("/a");
  const auto other_cgroup = std::make_shared<const std::string>("/b");
  const auto second_of_18 = [&](FlowKind kind) {
    StartWithTwo();
    for (uint64_t i = 0; i < 64; ++i) Join({i % 2 == 0 ? 1u : 3u, i % 8, kind, cgroup});
    for (int i = 0; i < 16; ++i) Join({2, 1000, kind, other_cgroup});
    return Turns(18)[2];
  };
  EXPECT_NEAR(second_of_18(FlowKind::kUser), 6, 1) << "one of three users";
  EXPECT_NEAR(second_of_18(FlowKind::kCgroup), 9, 1) << "one of two cgroups";
  EXPECT_NEAR(second_of_18(FlowKind::kOpener), 2, 1) << "one of nine openers";
  EXPECT_EQ(second_of_18(FlowKind::kNone), 0) << "the last to come";
}

// Goal: who waits beyond max_pending + 1 waits for his own, and of a class without a bound nothing
// is said.
TEST_F(ObjectWindowsTest, OfABoundedClassARequestTellsWhatTheLastAnswerTook) {
  Start();
  auto map = std::make_shared<ClusterMap>(*MapOf(1));
  map->classes[ClassId(16)].spec.service = {.bound = 5ms, .max_pending = 1};
  SetMap(map);
  const auto told = [this](uint32_t class_id) {
    Join({}, 4096, class_id);
    return flying_.back().stamp.waited;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(told(16), 0ms);
  for (const Duration later : {3ms, 1ms, 9ms}) {
    clock_.Advance(later);
    Answer();
  }
  EXPECT_EQ(told(16), 4ms) << "the longest, the third aside";
  EXPECT_EQ(told(16), 0ms) << "it was told";
  EXPECT_EQ(told(17), 0ms);
  clock_.Advance(1ms);
  AnswerAll();
  EXPECT_EQ(told(17), 0ms);
}

// What an OSD answered lately that it granted holds, and an error grants nothing.
TEST_F(ObjectWindowsTest, AnAnswerSetsTheWindowAndAnErrorLeavesIt) {
  Start({.first_window_bytes = 100, .beyond_bytes = 0, .beyond_requests = 0});
  for (int i = 0; i < 10; ++i) Join({}, 100);
  EXPECT_EQ(flying_.size(), 1u);
  ObjectOutcome grant;
  grant.window_bytes = 300;
  Answer(grant);
  EXPECT_EQ(flying_.size(), 3u);
  Answer(Status(ErrorCode::kUnreachable, "told to fail"));
  EXPECT_EQ(flying_.size(), 3u);
  const auto load = windows_->Loads().at(ClassId(16));
  EXPECT_EQ(load.flying_bytes, 300u);
  EXPECT_EQ(load.waiting_requests, 5u);
  EXPECT_EQ(load.answered_requests, 1u) << "the error aside";
  EXPECT_EQ(load.answered_bytes, 100u);
  EXPECT_EQ(windows_->sent(), 5u);
}

TEST_F(ObjectWindowsTest, WhatIsErasedNeitherLeavesNorWaits) {
  Start({.first_window_bytes = 100, .beyond_bytes = 0, .beyond_requests = 0});
  for (const uint32_t user : {1, 2, 3, 2}) Join({user, user}, 100);
  const auto of_two = [](const PendingOpPtr& pending) { return pending->op.flow.uid == 2; };
  windows_->Erase(of_two, clock_.Now());
  EXPECT_EQ(windows_->Loads().at(ClassId(16)).waiting_requests, 1u);
  Answer();
  EXPECT_EQ(LastUser(), 3u);
  Answer();
  EXPECT_TRUE(flying_.empty());
  const uint64_t waited = meter_.Times(clock_.Now()).at(ClassId(16)).window_ns;
  clock_.Advance(1s);
  EXPECT_EQ(meter_.Times(clock_.Now()).at(ClassId(16)).window_ns, waited);
}

}  // namespace
}  // namespace weir::client
