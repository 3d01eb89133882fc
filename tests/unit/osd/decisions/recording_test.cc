// A recording gives back every event that went in, and is refused when somebody has touched it.
#include "osd/decisions/recording.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "osd/decisions/recorded_config.h"
#include "osd/decisions/replay.h"
#include "osd/decisions/served.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using Kind = Event::Kind;
using qos::Request;
using qos::Scheduler;

class RecordingTest : public ::testing::Test {
 protected:
  RecordingTest()
      : path_(::testing::TempDir() + "recording." + std::to_string(::getpid()) + "." +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }
  ~RecordingTest() override { std::filesystem::remove(path_); }

  static SchedulerConfig Config() {
    SchedulerConfig config = *ApplyProfile("unified", {});
    config.token_rate = 40 << 20;
    config.depth = 4;
    return config;
  }

  // Two classes of weights 1 and 3 that always have something waiting, on a device that needs
  // 1 ms for each request; every call of a scheduler at least once.
  std::vector<Event> KeepSome(int requests, double weight = 3) {
    EventKeeper keeper;
    Prng prng(1);
    std::deque<Request> all;
    std::deque<Request*> device;
    TimePoint now{1'000'000'000};
    Scheduler scheduler(Config(), now, &keeper);
    for (const uint32_t id : {16, 17}) {
      ClassSpec spec;
      spec.id = ClassId(id);
      spec.weight = id == 16 ? 1 : weight;
      scheduler.SetClass(spec, now);
    }
    const auto arrive = [&](ClassId id) {
      Request& request = all.emplace_back();
      request.class_id = id;
      request.op = static_cast<qos::OpKind>(prng.Uniform(0, 2));
      request.bytes = prng.Uniform(1, 8) << 12;
      request.lba = prng.Next();
      request.elsewhere = static_cast<int64_t>(prng.Uniform(0, 10));
      request.transaction = static_cast<uint32_t>(prng.Uniform(0, 2));
      scheduler.Enqueue(&request, now);
    };
    for (int i = 0; i < 16; ++i) arrive(ClassId(16 + i % 2));
    for (int i = 0; i < requests; ++i) {
      while (Request* pulled = scheduler.Pull(now).request) device.push_back(pulled);
      now += 1ms;
      if (now >= scheduler.NextTick()) scheduler.Tick(now);
      if (i % 9 == 0) scheduler.Landed(device.front(), now);
      scheduler.Completed(device.front(), now);
      const ClassId id = device.front()->class_id;
      device.pop_front();
      arrive(id);
    }
    scheduler.Cancel(&all.back(), now);
    scheduler.SetBooked(7);
    scheduler.DoneOutside(8);
    scheduler.SetBulkCap(9, now);
    std::ignore = scheduler.Counters(now);
    scheduler.RemoveClass(ClassId(17), now);
    scheduler.Configure(*ApplyProfile("odis", Config()), now);
    return keeper.events();
  }

  [[nodiscard]] std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  void Keep(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string path_;
};

TEST_F(RecordingTest, WhatWentInComesOut) {
  const std::vector<Event> events = KeepSome(300);
  ASSERT_TRUE(SaveRecording(path_, events).ok());
  const auto loaded = LoadRecording(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ASSERT_EQ(loaded->size(), events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    const Event &in = events[i], &out = (*loaded)[i];
    ASSERT_EQ(in.kind, out.kind) << i;
    ASSERT_TRUE(!in.timed() || in.now == out.now) << i;
    ASSERT_EQ(in.request, out.request) << i;
    ASSERT_EQ(in.amount, out.amount) << i;
    ASSERT_EQ(in.class_id, out.class_id) << i;
    ASSERT_EQ(in.config == nullptr, out.config == nullptr) << i;
    ASSERT_EQ(in.spec == nullptr, out.spec == nullptr) << i;
    if (in.kind != Kind::kEnqueue) continue;
    ASSERT_EQ(std::tuple(in.op, in.bytes, in.lba, in.elsewhere, in.transaction),
              std::tuple(out.op, out.bytes, out.lba, out.elsewhere, out.transaction))
        << i;
  }
  const std::string bytes = Bytes();
  ASSERT_TRUE(SaveRecording(path_, *loaded).ok());
  EXPECT_EQ(Bytes(), bytes);
}

// By bytes: no field of what operators set may be forgotten when it is written or when it is read.
TEST_F(RecordingTest, EveryFieldOfAConfigurationComesOut) {
  SchedulerConfig config = *ApplyProfile("odis", Config());
  config.surplus = SurplusKind::kCooperative;
  config.sharing = SharingKind::kTotal;
  config.cost = CostKind::kDeviceTime;
  config.best_effort_min = 1;
  config.iops_max = 2;
  config.anticipation = true;
  config.processor_pressure = 3;
  config.quantum = 4ns;
  config.throughput_window = 5ns;
  config.spare = SpareCharge::kOwner;
  config.reset_idle = 6ns;
  config.cvc = {7ns, .8, 9ns, 10, 11, 12, false, 13ns};
  const auto out = FromRecorded(ToRecorded(config));
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->cvc, config.cvc);
  const auto all = [](const SchedulerConfig& c) {
    return std::tuple(c.profile, c.guarantee, c.surplus, c.sharing, c.gate, c.dispatch, c.cost,
                      c.maximizer, c.depth, c.token_rate, c.best_effort_min, c.iops_max,
                      c.anticipation, c.processor_pressure, c.quantum, c.throughput_window, c.spare,
                      c.reset_idle);
  };
  EXPECT_EQ(all(*out), all(config));
}

TEST_F(RecordingTest, EveryFieldOfAClassComesOut) {
  ClassSpec spec;
  spec.id = ClassId(17);
  spec.weight = 2;
  spec.min_weight = .3;
  spec.limit_bytes_per_s = 4;
  spec.reservation =
      Reservation{5, ReservationScope::kOsd, std::nullopt, 6, AdmissionKind::kMeasured};
  spec.reservation_ends = TimePoint{7};
  spec.disk = {ClassType::kLatency, .8, 9ns, 10, .11};
  spec.service = {12, 0, 13ns, .14, 15, 16};
  spec.admission = AdmissionKind::kMeasured;
  spec.transactions = {{17, 18}, {19, 20}};
  const auto out = FromRecorded(ToRecorded(spec));
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->disk, spec.disk);
  EXPECT_EQ(out->service, spec.service);
  EXPECT_EQ(out->reservation, spec.reservation);
  ASSERT_EQ(out->transactions.size(), 2u);
  EXPECT_EQ(std::pair(out->transactions[1].id, out->transactions[1].bytes_per_s),
            std::pair(19u, uint64_t{20}));
  const auto all = [](const ClassSpec& s) {
    return std::tuple(s.id, s.weight, s.min_weight, s.limit_bytes_per_s, s.reservation_ends,
                      s.admission);
  };
  EXPECT_EQ(all(*out), all(spec));
}

TEST_F(RecordingTest, IsReplayedAsALogIs) {
  ASSERT_TRUE(SaveRecording(path_, KeepSome(300)).ok());
  EventKeeper again;
  const auto replayed = ReplayDecisions(path_, &again);
  ASSERT_TRUE(replayed.ok()) << replayed.status().message();
  EXPECT_FALSE(replayed->difference);
  EXPECT_GT(replayed->pulled, 299u);
  const std::string bytes = Bytes();
  ASSERT_TRUE(SaveRecording(path_, again.events()).ok());
  EXPECT_EQ(Bytes(), bytes);
}

TEST_F(RecordingTest, WhatIsNoneIsRefused) {
  EXPECT_EQ(LoadRecording(path_).code(), ErrorCode::kNotFound);
  ASSERT_TRUE(SaveRecording(path_, KeepSome(20)).ok());
  const std::string good = Bytes();
  for (const std::string& bad :
       {std::string(), good.substr(1), good.substr(0, good.size() - 20), good.substr(0, 19)}) {
    Keep(bad);
    EXPECT_EQ(LoadRecording(path_).code(), ErrorCode::kBadMessage);
  }
  // Into the folder of a file there goes none.
  EXPECT_EQ(SaveRecording(path_ + "/x", KeepSome(1)).code(), ErrorCode::kIo);
}

// Bits that fill up the last byte of the compressed stream say nothing.
TEST_F(RecordingTest, AFlippedBitIsRefusedOrChangesNothing) {
  ASSERT_TRUE(SaveRecording(path_, KeepSome(50)).ok());
  const std::string good = Bytes();
  constexpr size_t kGzipHead = 10;  // its time and system say nothing
  Prng prng(::weir::testing::TestSeed());
  for (int i = 0; i < 200; ++i) {
    std::string bad = good;
    const size_t at = prng.Uniform(kRecordingHead.size() + kGzipHead, bad.size() - 1);
    bad[at] = static_cast<char>(bad[at] ^ (1 << prng.Uniform(0, 7)));
    Keep(bad);
    const auto loaded = LoadRecording(path_);
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.code(), ErrorCode::kBadMessage) << "byte " << at;
      continue;
    }
    ASSERT_TRUE(SaveRecording(path_, *loaded).ok());
    EXPECT_EQ(Bytes(), good) << "byte " << at;
  }
}

// What no scheduler can have gone through is refused whatever wrote it.
TEST_F(RecordingTest, EventsThatContradictOneAnotherAreRefused) {
  const std::vector<Event> good = KeepSome(20);
  const auto refused = [&](const std::vector<Event>& events) {
    EXPECT_TRUE(SaveRecording(path_, events).ok());
    return LoadRecording(path_).code() == ErrorCode::kBadMessage;
  };
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({good.begin() + 1, good.end()})) << "no start";
  for (const Kind kind : {Kind::kStart, Kind::kCompleted, Kind::kLanded}) {
    const auto found = std::find_if(good.begin(), good.end(),
                                    [kind](const Event& event) { return event.kind == kind; });
    std::vector<Event> twice = good;
    twice.insert(twice.begin() + (found - good.begin()) + 1, *found);
    EXPECT_TRUE(refused(twice)) << static_cast<int>(kind);
  }
  std::vector<Event> unknown = good;
  for (Event& event : unknown) {
    if (event.kind == Kind::kPull && event.request != 0) event.request += 1000;
  }
  EXPECT_TRUE(refused(unknown));
}

TEST_F(RecordingTest, ServedIsWhatCompletedByClass) {
  const std::vector<Event> events = KeepSome(250);
  const Served served = ServedOf(events);
  ASSERT_EQ(served.classes.size(), 2u);
  std::map<ClassId, uint64_t> expected;
  std::map<uint64_t, const Event*> arrivals;
  for (const Event& event : events) {
    if (event.kind == Kind::kEnqueue) arrivals[event.request] = &event;
    if (event.kind != Kind::kCompleted) continue;
    expected[arrivals[event.request]->class_id] += arrivals[event.request]->bytes;
  }
  for (const auto& [id, of_class] : served.classes) {
    ASSERT_EQ(of_class.until.size(), 3u) << "250 ms";
    EXPECT_EQ(of_class.until.back(), expected[id]);
    EXPECT_LT(of_class.until[0], of_class.until[1]);
  }
}

TEST_F(RecordingTest, InputsAloneGiveTheSameUnlessTheSchedulerIsAnother) {
  const std::vector<Event> events = KeepSome(1000);
  const Served recorded = ServedOf(events);
  EXPECT_EQ(LargestGap(recorded, ServedOf(ReplayInputs(events)), 0).part, 0);
  const ServedGap gap = LargestGap(recorded, ServedOf(KeepSome(1000, 1)), 0);
  EXPECT_GT(gap.part, .2);
  EXPECT_GT(gap.at, 0ms);
}

}  // namespace
}  // namespace weir::osd
