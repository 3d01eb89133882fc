// What a scheduler did is kept whole, done again alike, and refused when somebody has touched it.
#include "osd/decisions/decision_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/prng.h"
#include "common/testing/seed.h"
#include "osd/decisions/replay.h"
#include "osd/qos/scheduler.h"

namespace weir::osd {
namespace {

using qos::Request;
using qos::Scheduler;

constexpr auto kNobodyReports = [](const std::string&) {};

class DecisionLogTest : public ::testing::Test {
 protected:
  DecisionLogTest()
      : path_(::testing::TempDir() + "decisions." + std::to_string(::getpid()) + "." +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }
  ~DecisionLogTest() override { std::filesystem::remove(path_); }

  // A scheduler among random requests, classes and configurations; what it did is in path_.
  void RecordSome(int steps) {
    auto log = *DecisionLog::Create(path_, kNobodyReports);
    Prng prng(::weir::testing::TestSeed());
    SchedulerConfig config = *ApplyProfile("unified", {});
    config.token_rate = 40 << 20;
    std::deque<Request> requests;
    std::vector<Request*> on_device;
    Scheduler scheduler(config, now_, log.get());
    for (int i = 0; i < steps; ++i) {
      now_ += std::chrono::microseconds(prng.Uniform(0, 400));
      if (now_ >= scheduler.NextTick()) scheduler.Tick(now_);
      if (prng.Chance(0.02)) scheduler.SetBulkCap(prng.Uniform(0, 4) << 22, now_);
      switch (prng.Uniform(0, 9)) {
        case 0:
          scheduler.SetClass(AnyClass(&prng), now_);
          break;
        case 1:
          if (prng.Chance(0.02)) scheduler.RemoveClass(ClassId(20), now_);
          if (prng.Chance(0.05)) {
            config = *ApplyProfile(prng.Chance(0.5) ? "odis" : "dsfq-total", config);
            scheduler.Configure(config, now_);
          }
          scheduler.SetBooked(prng.Uniform(0, 40 << 20));
          std::ignore = scheduler.Counters(now_);
          break;
        case 2:
          if (!requests.empty() && requests.back().stage == Request::Stage::kQueued) {
            scheduler.Cancel(&requests.back(), now_);
          }
          break;
        case 3:
        case 4:
          if (!on_device.empty()) {
            Request* done = on_device.back();
            on_device.pop_back();
            if (prng.Chance(0.3)) scheduler.Landed(done, now_);
            scheduler.Completed(done, now_);
          }
          break;
        default:
          Request& request = requests.emplace_back();
          request.class_id = ClassId(static_cast<uint32_t>(prng.Uniform(19, 22)));
          request.op = prng.Chance(0.5) ? qos::OpKind::kRead : qos::OpKind::kWrite;
          request.bytes = prng.Uniform(1, 64) << 10;
          request.lba = prng.Uniform(0, 1 << 20) << 12;
          request.elsewhere = static_cast<int64_t>(prng.Uniform(0, 100));
          scheduler.Enqueue(&request, now_);
      }
      while (Request* pulled = scheduler.Pull(now_).request) on_device.push_back(pulled);
    }
    pulled_ = on_device.size();
    arrived_ = requests.size();
  }

  ClassSpec AnyClass(Prng* prng) const {
    ClassSpec spec;
    spec.id = ClassId(static_cast<uint32_t>(prng->Uniform(19, 21)));
    spec.name = "c" + std::to_string(spec.id.value);
    spec.weight = 1 + prng->Real();
    if (prng->Chance(0.3)) spec.service.bound = std::chrono::milliseconds(5);
    if (prng->Chance(0.3)) spec.limit_bytes_per_s = prng->Uniform(1, 20) << 20;
    if (prng->Chance(0.3)) {
      spec.reservation = Reservation{.bytes_per_s = prng->Uniform(1, 9) << 20};
      spec.reservation->ends = WallTime{1};
      spec.reservation_ends = now_ + std::chrono::milliseconds(prng->Uniform(1, 100));
    }
    return spec;
  }

  [[nodiscard]] std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  void Keep(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string path_;
  TimePoint now_{1'000'000'000};
  size_t pulled_ = 0, arrived_ = 0;
};

TEST_F(DecisionLogTest, WhatItSaysIsDoneAgain) {
  RecordSome(20'000);
  const auto replayed = ReplayDecisions(path_);
  ASSERT_TRUE(replayed.ok()) << replayed.status().message();
  EXPECT_FALSE(replayed->difference);
  EXPECT_FALSE(replayed->cut_off);
  EXPECT_EQ(replayed->requests, arrived_);
  EXPECT_GT(replayed->pulled, arrived_ / 4);
}

TEST_F(DecisionLogTest, NothingIsOverwritten) {
  Keep("precious");
  EXPECT_EQ(DecisionLog::Create(path_, kNobodyReports).code(), ErrorCode::kExists);
  EXPECT_EQ(Bytes(), "precious");
}

TEST_F(DecisionLogTest, OneThatIsCutOffIsReplayedAsFarAsItGoes) {
  RecordSome(500);
  Keep(Bytes().substr(0, Bytes().size() - 3));
  const auto replayed = ReplayDecisions(path_);
  ASSERT_TRUE(replayed.ok()) << replayed.status().message();
  EXPECT_TRUE(replayed->cut_off);
  EXPECT_FALSE(replayed->difference);
}

TEST_F(DecisionLogTest, WhatIsNoneIsRefused) {
  EXPECT_EQ(ReplayDecisions(path_).code(), ErrorCode::kNotFound);
  Keep("something else, and longer than the head of a log");
  EXPECT_EQ(ReplayDecisions(path_).code(), ErrorCode::kBadMessage);
  Keep("");
  EXPECT_EQ(ReplayDecisions(path_).code(), ErrorCode::kBadMessage);
}

// Somebody's bits flip: an error, a difference or a cut, sometimes nothing, never a crash.
TEST_F(DecisionLogTest, AFlippedBitIsSurvived) {
  RecordSome(400);
  const std::string good = Bytes();
  Prng prng(::weir::testing::TestSeed());
  uint64_t noticed = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    const size_t at = prng.Uniform(kDecisionLogHead.size(), bad.size() - 1);
    bad[at] = static_cast<char>(bad[at] ^ (1 << prng.Uniform(0, 7)));
    Keep(bad);
    const auto replayed = ReplayDecisions(path_);
    noticed += !replayed.ok() || replayed->difference || replayed->cut_off ? 1 : 0;
  }
  EXPECT_GT(noticed, 100u);
}

}  // namespace
}  // namespace weir::osd
