// A TierSet over stores that complete when the test says, under a manual clock.
#include "osd/io/tier_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/testing/manual_clock.h"
#include "common/testing/manual_loop.h"
#include "osd/qos/admission/service_monitor.h"
#include "tests/unit/osd/io/held_object_store.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr ClassId kOltp{16}, kMail{17}, kUnknown{99};
constexpr uint64_t kMiB = 1 << 20;

TEST(TierDelaysTest, WhatWentElsewhereSinceTheLastRequestHere) {
  TierDelays delays;
  EXPECT_EQ(delays.OnRequest(kOltp, 0, 0, 4), 0);
  EXPECT_EQ(delays.OnRequest(kOltp, 0, 0, 4), 0);
  EXPECT_EQ(delays.OnRequest(kOltp, 1, 0, 4), 8);    // both of tier 0
  EXPECT_EQ(delays.OnRequest(kOltp, 1, 10, 4), 10);  // other OSDs
  EXPECT_EQ(delays.OnRequest(kOltp, 0, 1, 4), 4 + 14 + 1);
  EXPECT_EQ(delays.OnRequest(kMail, 0, 0, 4), 0);  // classes are apart
  delays.Forget(kOltp);
  EXPECT_EQ(delays.OnRequest(kOltp, 1, 0, 4), 0);
}

class TestOp final : public ObjectOp {
 public:
  explicit TestOp(std::function<void(const Status&)> done) : done_(std::move(done)) {}
  void Done(ObjectOpResult result) override { done_(result.status); }

 private:
  const std::function<void(const Status&)> done_;
};

class TierSetTest : public ::testing::Test {
 protected:
  TierSetTest()
      : first_(ssd_, clock_, loop_, Config()),
        set_(first_, {{Ssd(), &ssd_, 100 * kMiB}, {Hdd(), &hdd_, 10 * kMiB}}, clock_, false) {
    ssd_.after = hdd_.after = [this] { loop_.RunDue(); };
    set_.Apply(Config(), Classes());
  }
  ~TierSetTest() override {
    ssd_.immediate = hdd_.immediate = true;
    ssd_.ReleaseAll();
    hdd_.ReleaseAll();
    first_.BeginDrain();
    set_.BeginDrain();
    loop_.Run();
    EXPECT_EQ(first_.outstanding(), 0u);
    EXPECT_TRUE(set_.idle());
  }
  static TierName Ssd() { return TierName::FromWire("ssd"); }
  static TierName Hdd() { return TierName::FromWire("hdd"); }
  static SchedulerConfig Config() {
    SchedulerConfig config = *ApplyProfile("baa", {});
    config.depth = 1;
    config.token_rate = 10 * kMiB;
    return config;
  }
  static std::vector<ClassSpec> Classes() {
    std::vector<ClassSpec> classes(3);
    classes[1].id = kOltp;
    classes[2].id = kMail;
    for (ClassSpec& spec : classes) spec.name = "class" + std::to_string(spec.id.value);
    return classes;
  }
  void Submit(ObjectOpKind kind, ClassId id, uint64_t inode, TierName tier) {
    auto op = std::make_unique<TestOp>([this](const Status& status) {
      ++done_;
      last_ = status;
    });
    op->kind = kind;
    op->object = {InodeId(inode), 0};
    op->length = kind == ObjectOpKind::kDeleteInode ? 0 : 4096;
    op->class_id = id;
    set_.Submit(std::move(op), tier);
    loop_.Run();
  }
  // Both are full for `seconds`: a class has a hundred requests queued on each tier, and what the
  // tiers do a second is 20 and 100.
  void KeepBusy(int seconds) {
    for (int tick = 0; tick < seconds * 100; ++tick) {
      clock_.Advance(10ms);
      Release(&ssd_);
      if (tick % 5 == 0) Release(&hdd_);
      loop_.RunDue();
      set_.Poll();
    }
  }
  // One request is served, and its class sends the next: oltp 3 of 4 to the hdd, mail 1 of 20.
  void Release(testing::HeldObjectStore* store) {
    if (store->held() == 0) return;
    const std::string what = store->started().front();
    const uint64_t inode = std::stoull(what.substr(5));
    store->Release();
    Send(ClassId(static_cast<uint32_t>(inode)));
  }
  void Send(ClassId id) {
    const uint64_t n = sent_[id]++;
    const bool to_hdd = id == kOltp ? n % 4 != 0 : n % 20 == 0;
    Submit(ObjectOpKind::kRead, id, id.value, to_hdd ? Hdd() : Ssd());
  }
  double WeightOf(ClassId id) { return set_.Weights().at(id); }

  weir::testing::ManualClock clock_;
  weir::testing::ManualLoop loop_{clock_};
  testing::HeldObjectStore ssd_, hdd_;
  Dispatcher first_;
  TierSet set_;
  std::map<ClassId, uint64_t> sent_;
  int done_ = 0;
  Status last_;
};

TEST_F(TierSetTest, AnObjectIsWhereItsLayoutSaysElseOnTheFirst) {
  Submit(ObjectOpKind::kRead, kOltp, 1, Hdd());
  Submit(ObjectOpKind::kRead, kOltp, 2, {});
  EXPECT_THAT(hdd_.started(), ElementsAre("read 1.0 at 0"));
  EXPECT_THAT(ssd_.started(), ElementsAre("read 2.0 at 0"));
  ssd_.Release();
  Submit(ObjectOpKind::kRead, kOltp, 3, TierName::FromWire("tape"));
  EXPECT_THAT(ssd_.started(), ElementsAre("read 3.0 at 0"));
}

TEST_F(TierSetTest, ADiskSaysForItselfWhatItStillTakes) {
  ssd_.stats = {.capacity_bytes = 1000, .used_bytes = 1001};
  hdd_.stats = {.capacity_bytes = 5000, .used_bytes = 1000};
  EXPECT_EQ(set_.FreeBytes(TierName::FromWire("hdd")), 4000u);
  EXPECT_EQ(set_.FreeBytes(TierName::FromWire("ssd")), 0u);
  EXPECT_EQ(set_.FreeBytes({}), 0u) << "the first";
}

TEST_F(TierSetTest, AFileIsDeletedEverywhereAndTheFirstErrorIsTold) {
  Submit(ObjectOpKind::kDeleteInode, kSystemPurge, 7, {});
  ASSERT_THAT(hdd_.started(), ElementsAre("delete-inode 7.0 at 0"));
  ssd_.Release();
  EXPECT_EQ(done_, 0);
  hdd_.fail = {ErrorCode::kIo, "broken"};
  hdd_.Release();
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(last_.code(), ErrorCode::kIo);
}

TEST_F(TierSetTest, TokenRatesKeepTheirRatio) {
  SchedulerConfig config = Config();
  config.token_rate = 20 * kMiB;
  set_.Apply(config, Classes());
  const auto reports = set_.Reports(first_.Stats(false), false);
  EXPECT_EQ(reports[0].token_rate, 200 * kMiB);
  EXPECT_EQ(reports[1].token_rate, 20 * kMiB);
}

// What a scheduler would give by equal weights leaves the SSD idle: three of four requests of oltp
// and every twentieth of mail go to the HDD. The loop sees it and weighs mail so much higher.
TEST_F(TierSetTest, WeightsComeFromWhereRequestsGo) {
  for (int n = 0; n < 100; ++n) {
    Send(kOltp);
    Send(kMail);
  }
  KeepBusy(30);
  const auto divisions = set_.Divisions();
  const auto of = [&](ClassId id) {
    return *std::find_if(divisions.begin(), divisions.end(),
                         [id](const auto& division) { return division.id == id; });
  };
  EXPECT_NEAR(of(kOltp).use[1], .75, .05);
  EXPECT_NEAR(of(kMail).use[1], .05, .02);
  EXPECT_EQ(of(kOltp).bottleneck, 1u);
  EXPECT_EQ(of(kMail).bottleneck, 0u);
  EXPECT_FALSE(of(kBestEffort).active);
  const auto reports = set_.Reports(first_.Stats(false), false);
  EXPECT_NEAR(reports[0].requests_per_s, 100, 5);
  EXPECT_NEAR(reports[1].requests_per_s, 20, 2);
  // With 100 and 20: 20 = .75 a + .05 b and 100 = .25 a + .95 b, so a = 20, b = 100.
  EXPECT_NEAR(WeightOf(kMail) / WeightOf(kOltp), 5, .5);
  EXPECT_NEAR(WeightOf(kMail) + WeightOf(kOltp) + WeightOf(kBestEffort), 3, 1e-9);
}

TEST_F(TierSetTest, FairIsTheOperatorsWordAndDrfIsNeither) {
  for (int n = 0; n < 100; ++n) {
    Send(kOltp);
    Send(kMail);
  }
  KeepBusy(20);
  const double aware = WeightOf(kMail) / WeightOf(kOltp);
  SchedulerConfig config = Config();
  config.allocation.kind = AllocationKind::kFair;
  set_.Apply(config, Classes());
  KeepBusy(5);
  EXPECT_EQ(WeightOf(kMail), 1);
  EXPECT_EQ(WeightOf(kOltp), 1);
  config.allocation.kind = AllocationKind::kDominantResource;
  set_.Apply(config, Classes());
  KeepBusy(5);
  // Equal parts of the bottlenecks: .75 a / 20 = .95 b / 100.
  const double dominant = WeightOf(kMail) / WeightOf(kOltp);
  EXPECT_NEAR(dominant, .75 / 20 / (.95 / 100), .5);
  EXPECT_GT(aware, dominant + .4);
}

TEST_F(TierSetTest, ClassesThatNobodyKnowsAreBestEffortAndLeaveNoTrace) {
  for (uint32_t i = 0; i < 50; ++i) {
    Submit(ObjectOpKind::kRead, ClassId(kUnknown.value + i), 1, Hdd());
  }
  clock_.Advance(2s);
  set_.Poll();
  const auto divisions = set_.Divisions();
  EXPECT_EQ(divisions.size(), 3u);
  EXPECT_TRUE(divisions.front().active);
  EXPECT_EQ(divisions.front().id, kBestEffort);
}

TEST_F(TierSetTest, ClassesThatWentAreForgotten) {
  Send(kOltp);
  std::vector<ClassSpec> classes = Classes();
  classes.erase(classes.begin() + 1);
  set_.Apply(Config(), classes);
  clock_.Advance(2s);
  set_.Poll();
  for (const auto& division : set_.Divisions()) EXPECT_NE(division.id, kOltp);
  EXPECT_FALSE(set_.Weights().contains(kOltp));
}

}  // namespace
}  // namespace weir::osd
