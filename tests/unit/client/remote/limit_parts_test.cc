// Goal: a mount asks for its parts of limits at once, then ten times a second, and not for ever.
#include "client/remote/limit_parts.h"

#include "common/placement/divided_limits.h"
#include "tests/unit/client/remote/object_io_fixture.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

class LimitPartsTest : public ObjectIoFixture {
 protected:
  LimitPartsTest() {
    Start({.windows = {.wake_by = [this](TimePoint) { wanted_ += parts_->Wanted() ? 1 : 0; }}}, 3);
    parts_ = std::make_unique<LimitParts>(
        clock_, *io_,
        [this](const wire::DivideLimitsRequest& request, LimitParts::OnReply on_reply) {
          asked_.push_back(request);
          if (answers_) Answer(request, on_reply);
        },
        0);
    auto map = std::make_shared<ClusterMap>(*MapOf(3, 2));
    ClassEntry& entry = map->classes[ClassId(16)];
    entry.spec.id = ClassId(16);
    entry.spec.limit_bytes_per_s = 1000;
    io_->SetMap(map);
  }
  void Answer(const wire::DivideLimitsRequest& request, const LimitParts::OnReply& on_reply) const {
    std::vector<LimitPart> parts;
    for (const wire::LimitReport& report : request.reports()) {
      parts.push_back({ClassId(report.class_id()), part_, 1});
    }
    on_reply(ToWire(parts));
  }
  // With whatever a waker would do meanwhile.
  void Pass(Duration time) {
    for (const TimePoint end = clock_.Now() + time; clock_.Now() < end; clock_.Advance(1ms)) {
      next_ = parts_->Poll();
      io_->SendDue();
      osds_.AnswerAll();
    }
  }

  std::unique_ptr<LimitParts> parts_;
  std::vector<wire::DivideLimitsRequest> asked_;
  bool answers_ = true;
  double part_ = 1;
  TimePoint next_;
  int wanted_ = 0;
};

TEST_F(LimitPartsTest, AsksAtOnceAndThenTenTimesASecondWhileSomethingWaits) {
  EXPECT_EQ(parts_->Poll(), TimePoint::Max());
  for (uint64_t i = 0; i < 30; ++i) Read("limited", 16, 100, i);
  EXPECT_EQ(wanted_, 1);
  Pass(1ms);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].reports(0).part(), 0u);
  Pass(999ms);
  EXPECT_GE(asked_.size(), 9u);
  EXPECT_LE(asked_.size(), 11u) << "also when each answer lets something leave";
  EXPECT_GE(ends_.size(), 9u);
  Pass(5s);
  EXPECT_EQ(ends_.size(), 30u);
  EXPECT_EQ(next_, TimePoint::Max()) << "nothing waits any more";
  EXPECT_EQ(asked_.back().reports_size(), 0) << "it gave back what it had";
  const size_t asked = asked_.size();
  Pass(5s);
  EXPECT_EQ(asked_.size(), asked);
  Read("limited", 16, 100);
  Read("limited", 16, 100);
  EXPECT_EQ(wanted_, 2) << "and begins anew";
}

TEST_F(LimitPartsTest, WhatIsNotAnsweredIsNotAskedTwice) {
  answers_ = false;
  for (uint64_t i = 0; i < 30; ++i) Read("limited", 16, 100, i);
  Pass(900ms);
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(LimitPartsTest, AGoodPartThatWasTakenAwayIsConfirmedAtOnce) {
  for (uint64_t i = 0; i < 30; ++i) Read("limited", 16, 100, i);
  Pass(150ms);
  const size_t asked = asked_.size();
  part_ = 0.5;
  Pass(60ms);
  ASSERT_EQ(asked_.size(), asked + 2);
  EXPECT_EQ(asked_.back().reports(0).part(), 500'000'000u);
}

}  // namespace
}  // namespace weir::client
