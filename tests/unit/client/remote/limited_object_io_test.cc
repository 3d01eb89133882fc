// Goal: a class with a limit over several OSDs keeps to it, and loses nothing of it.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/client/remote/object_io_fixture.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

// Three OSDs, and class 16 limited to 1000 bytes a second over all of them.
class LimitedObjectIoTest : public ObjectIoFixture {
 protected:
  void StartLimited(uint32_t osds = 3) {
    Start({.windows = {.wake_by = [this](TimePoint when) { wakes_.push_back(when); }}}, osds);
    osds_count_ = osds;
    Limit(1000);
    SetPart(1);
  }
  void SetPart(double part) { io_->SetLimitParts({{ClassId(16), part}}, ++order_); }
  // So long, with all that may leave on the way.
  void Pass(Duration time) {
    for (const TimePoint end = clock_.Now() + time; clock_.Now() < end;) {
      clock_.Advance(1ms);
      io_->SendDue();
    }
  }
  void Limit(std::optional<uint64_t> bytes_per_s,
             ReservationScope scope = ReservationScope::kCluster) {
    auto map = std::make_shared<ClusterMap>(*MapOf(osds_count_, ++epoch_));
    ClassEntry& entry = map->classes[ClassId(16)];
    entry.spec.id = ClassId(16);
    entry.spec.limit_bytes_per_s = bytes_per_s;
    entry.spec.reservation = Reservation{1, scope, std::nullopt};
    io_->SetMap(map);
  }
  uint32_t osds_count_ = 3;
  uint64_t epoch_ = 1;
  uint64_t order_ = 0;
  std::vector<TimePoint> wakes_;
};

TEST_F(LimitedObjectIoTest, NoSecondOfAllOsdsTogetherHasMore) {
  StartLimited();
  const TimePoint start = clock_.Now();
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  Read("other", 17, 100);
  ASSERT_LE(osds_.flights.size(), 3u) << "paced";
  EXPECT_EQ(osds_.flights.back().op.class_id, ClassId(17));
  Pass(1200ms);
  ASSERT_EQ(osds_.flights.size(), 12u) << "1005 bytes and one request, and the other class's";
  std::set<OsdId> asked;
  for (const auto& flight : osds_.flights) {
    if (flight.op.class_id == ClassId(16)) asked.insert(flight.stamp.osd);
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_EQ(io_->SendDue(), start + 2s) << "or an answer";
  osds_.AnswerAll();
  EXPECT_TRUE(osds_.flights.empty());
  EXPECT_EQ(wakes_.back(), clock_.Now() + 1s);
  const MountClassTimes before = io_->Times().at(ClassId(16));
  clock_.Advance(400ms);
  EXPECT_EQ(io_->SendDue(), clock_.Now() + 600ms);
  EXPECT_TRUE(osds_.flights.empty());
  const MountClassTimes times = io_->Times().at(ClassId(16));
  EXPECT_EQ(times.limit_ns - before.limit_ns, uint64_t{39} * 400'000'000);
  EXPECT_EQ(times.limited_ns - before.limited_ns, 400'000'000u);
  EXPECT_EQ(times.window_ns, 0u);
  clock_.Advance(600ms);
  EXPECT_EQ(io_->SendDue(), clock_.Now() + 100ms);
  EXPECT_EQ(osds_.flights.size(), 3u) << "two of them saved up";
}

// Prevents: of two threads that bring parts the slower one brings back what held before.
TEST_F(LimitedObjectIoTest, OlderPartsDoNotComeBack) {
  StartLimited();
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  io_->SetLimitParts({{ClassId(16), 0}}, order_ - 1);
  const size_t before = osds_.flights.size();
  Pass(500ms);
  EXPECT_GE(osds_.flights.size(), before + 4) << "a tenth of the second each";
}

TEST_F(LimitedObjectIoTest, AFullWindowHoldsUpNoOtherOsd) {
  Start({.windows = {.first_window_bytes = 100,
                     .beyond_bytes = 0,
                     .beyond_requests = 0,
                     .wake_by = [](TimePoint) {}}},
        3);
  Limit(1000);
  SetPart(1);
  const auto map = MapOf(3);
  const OsdId first = map->ChainOf(PoolId(1), {InodeId(7), 0})->head();
  for (int i = 0; i < 4; ++i) Read("to the first", 16, 100, 0);
  for (uint64_t i = 1; i < 12; ++i) {
    if (map->ChainOf(PoolId(1), {InodeId(7), i})->head() != first) Read("elsewhere", 16, 100, i);
  }
  Pass(1s);
  std::set<OsdId> asked;
  for (const auto& flight : osds_.flights) asked.insert(flight.stamp.osd);
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_EQ(io_->InFlightBytes(ClassId(16), first), 100u);
}

// Goal: a class that asks an OSD for much at once, then the next, is not kept to the share that one
// OSD has for it while the others stand by.
TEST_F(LimitedObjectIoTest, TheOsdsInTurns) {
  StartLimited();
  const auto map = MapOf(3);
  const auto osd_of = [&](uint64_t i) { return map->ChainOf(PoolId(1), {InodeId(7), i})->head(); };
  std::map<OsdId, uint64_t> object_on;
  for (uint64_t i = 0; object_on.size() < 3; ++i) object_on.emplace(osd_of(i), i);
  for (const auto& [osd, object] : object_on) {
    for (int i = 0; i < 20; ++i) Read("limited", 16, 100, object);
  }
  Pass(1200ms);
  ASSERT_EQ(osds_.flights.size(), 11u);
  std::map<OsdId, int> sent;
  for (const auto& flight : osds_.flights) ++sent[flight.stamp.osd];
  for (const auto& [osd, count] : sent) EXPECT_GE(count, 3) << "osd." << osd.value;
  EXPECT_EQ(sent.size(), 3u);

  // One that answers nothing gets no more than the others, twice, and two requests.
  const OsdId slow = osds_.flights.front().stamp.osd;
  for (int round = 0; round < 10; ++round) {
    for (size_t i = osds_.flights.size(); i-- > 0;) {
      if (osds_.flights[i].stamp.osd != slow) osds_.Answer(i);
    }
    clock_.Advance(100ms);
    io_->SendDue();
  }
  EXPECT_LE(io_->InFlightBytes(ClassId(16), slow), 600u);
}

TEST_F(LimitedObjectIoTest, ALimitThatRisesOrGoesLetsMoreLeave) {
  StartLimited();
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  Pass(1200ms);
  EXPECT_EQ(osds_.flights.size(), 11u);
  Limit(2000);
  Pass(600ms);
  EXPECT_EQ(osds_.flights.size(), 21u);
  Limit(std::nullopt);
  EXPECT_EQ(osds_.flights.size(), 50u);
  Limit(1000);
  while (osds_.flights.size() > 5) osds_.Answer(0);
  Read("after", 16, 100);
  Pass(100ms);
  EXPECT_EQ(osds_.flights.size(), 5u) << "what was under way when it came counts";
}

TEST_F(LimitedObjectIoTest, WhoHasNoPartSendsOneRequestAndWhoHasHalfHalfAsMuch) {
  Start({.windows = {.wake_by = [this](TimePoint when) { wakes_.push_back(when); }}}, 3);
  Limit(1000);
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  EXPECT_EQ(osds_.flights.size(), 1u);
  EXPECT_FALSE(wakes_.empty()) << "so that somebody asks for one";
  const LimitShare::Counts counts = io_->LimitCounts().at(ClassId(16));
  EXPECT_EQ(counts.queued_bytes, 4900u);
  EXPECT_EQ(counts.served_bytes, 0u);
  const auto answered_in_a_second = [this](double part) {
    uint64_t before = 0;
    for (int ms = 0; ms < 2000; ++ms) {
      if (ms == 1000) before = io_->LimitCounts().at(ClassId(16)).served_bytes;
      SetPart(part);
      osds_.AnswerAll();
      clock_.Advance(1ms);
      io_->SendDue();
    }
    return io_->LimitCounts().at(ClassId(16)).served_bytes - before;
  };
  EXPECT_EQ(answered_in_a_second(0.5), 500u);
  EXPECT_EQ(answered_in_a_second(0.9), 900u);
  EXPECT_GT(io_->LimitCounts().at(ClassId(16)).limited, 1s);
  EXPECT_LE(answered_in_a_second(0), 100u);
}

TEST_F(LimitedObjectIoTest, WhatOneOsdHoldsByItselfIsLeftToIt) {
  StartLimited(1);
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  EXPECT_EQ(osds_.flights.size(), 50u);
  osds_.AnswerAll();
  Start({.windows = {.wake_by = [](TimePoint) {}}}, 3);
  osds_count_ = 3;
  Limit(1000, ReservationScope::kOsd);
  for (uint64_t i = 0; i < 50; ++i) Read("on each", 16, 100, i);
  EXPECT_EQ(osds_.flights.size(), 50u);
}

TEST_F(LimitedObjectIoTest, WhatFailedTakesNothingOfTheLimit) {
  StartLimited();
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  for (int i = 0; i < 50; ++i) {
    while (!osds_.flights.empty()) osds_.Fail(0, ErrorCode::kCorrupt);
    Pass(100ms);
    io_->Tick();
  }
  EXPECT_GE(osds_.sent, 49u) << "in five seconds";
}

TEST_F(LimitedObjectIoTest, AnOsdThatIsGoneDoesNotKeepTheClassFromTheOthers) {
  StartLimited();
  const OsdId gone = MapOf(3)->ChainOf(PoolId(1), {InodeId(7), 0})->head();
  for (int i = 0; i < 20; ++i) Read("gone", 16, 100, 0);
  Pass(1200ms);
  EXPECT_EQ(osds_.flights.size(), 11u);
  uint64_t other = 1;
  while (MapOf(3)->ChainOf(PoolId(1), {InodeId(7), other})->head() == gone) ++other;
  for (int i = 0; i < 20; ++i) Read("there", 16, 100, other);
  Pass(1900ms);
  ASSERT_EQ(osds_.flights.size(), 22u);
  EXPECT_GE(std::count_if(osds_.flights.begin() + 11, osds_.flights.end(),
                          [gone](const auto& flight) { return flight.stamp.osd != gone; }),
            8)
      << "it gets little more by answering nothing";
  Pass(10s);
  EXPECT_EQ(osds_.sent, 40u);
  while (!osds_.flights.empty()) osds_.Fail(0, ErrorCode::kUnreachable);
  EXPECT_EQ(osds_.sent, 40u) << "what failed goes out again with the next tick";
  io_->Tick();
  Pass(1200ms);
  EXPECT_EQ(osds_.flights.size(), 11u);
}

// Goal: answers that come sooner than was counted on are given when the second has room for them,
// and at once when the limit or the mount goes.
TEST_F(LimitedObjectIoTest, AnswersBeyondTheLimitAreHeldBack) {
  for (const std::string end : {"time", "limit", "mount"}) {
    ends_.clear();
    osds_.flights.clear();
    StartLimited();
    for (int i = 0; i < 500; ++i) Read("limited", 16, 10);
    osds_.server_time = 190ms;
    std::vector<size_t> given;   // up to each millisecond
    std::deque<TimePoint> left;  // of those under way
    const auto pass = [&](Duration time, Duration latency) {
      for (const TimePoint until = clock_.Now() + time; clock_.Now() < until;) {
        left.resize(osds_.flights.size(), clock_.Now());
        Pass(1ms);
        for (; !left.empty() && left.front() + latency <= clock_.Now(); left.pop_front()) {
          osds_.Answer(0);
        }
        given.push_back(ends_.size());
      }
    };
    pass(3s, 200ms);
    const size_t all = ends_.size() + osds_.flights.size();
    osds_.AnswerAll();
    left.clear();
    ASSERT_LE(ends_.size() + 3, all) << "that many are held back";
    ASSERT_EQ(wakes_.back(), io_->SendDue());
    if (end == "limit") Limit(std::nullopt);
    if (end == "mount") io_->Stop();
    if (end == "time") pass(160ms, 1ms);
    EXPECT_GE(ends_.size(), all) << end;
    EXPECT_EQ(ends_[all - 1].second, ErrorCode::kOk) << end;
    for (size_t i = 1000; i < given.size(); ++i) {
      ASSERT_LE(given[i] - given[i - 1000], 101u) << end << " at " << i;
    }
  }
}

TEST_F(LimitedObjectIoTest, NothingIsStuckWhenTheClassGoesOrTheMount) {
  StartLimited();
  for (uint64_t i = 0; i < 50; ++i) Read("limited", 16, 100, i);
  Pass(1200ms);
  EXPECT_EQ(osds_.flights.size(), 11u);
  io_->SetMap(MapOf(3, ++epoch_));  // without the class
  EXPECT_EQ(osds_.flights.size(), 50u);
  EXPECT_EQ(io_->SendDue(), TimePoint::Max());
  osds_.AnswerAll();
  Limit(1000);
  for (uint64_t i = 0; i < 50; ++i) Read("again", 16, 100, i);
  Pass(1200ms);
  EXPECT_EQ(osds_.flights.size(), 11u);
  io_->Stop();
  EXPECT_EQ(ends_.size(), 50u + 39u);
  EXPECT_EQ(io_->SendDue(), TimePoint::Max());
  osds_.AnswerAll();
  EXPECT_EQ(ends_.size(), 100u);
}

// An OSD 40 ms away takes nothing of the limit. One that holds everything for the limit 40 ms long
// has got more than it may let pass, and gets no more.
TEST_F(LimitedObjectIoTest, TimeAtAnOsdForTheLimitIsNoLatency) {
  for (const bool held : {false, true}) {
    osds_.flights.clear();
    Start({.windows = {.wake_by = [](TimePoint) {}}}, 3);
    Limit(1000);
    SetPart(1);
    osds_.server_time = 35ms;
    osds_.limit_time = held ? 40ms : 0ms;
    std::deque<TimePoint> left;  // of those under way
    uint64_t before = 0;
    for (int step = 0; step < 2200; ++step) {
      if (step == 200) before = osds_.sent;
      for (int i = 0; i < 2; ++i) Read("limited", 16, 10);
      io_->SendDue();
      left.resize(osds_.flights.size(), clock_.Now());
      clock_.Advance(10ms);
      while (!left.empty() && left.front() + 40ms <= clock_.Now()) {
        left.pop_front();
        osds_.Answer(0);
        left.resize(osds_.flights.size(), clock_.Now());
      }
    }
    const uint64_t sent = 10 * (osds_.sent - before);  // bytes in 20 s
    EXPECT_GE(sent, held ? 19'200u : 19'900u);
    EXPECT_LE(sent, held ? 19'700u : 20'200u);
  }
}

}  // namespace
}  // namespace weir::client
