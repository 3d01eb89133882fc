#include "client/qos/user_parts.h"

#include <gtest/gtest.h>

#include <deque>

#include "common/qos/flow_kind.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

class UserPartsTest : public ::testing::Test {
 protected:
  static uint64_t KeyOfUser(uint32_t uid) {
    return KeyOf({.kind = FlowKind::kUser, .uid = uid}).user;
  }
  FlowOrder::Item* Ask(uint32_t uid, uint64_t bytes = 1000) {
    FlowOrder::Item* item = &items_.emplace_back();
    flows_.Add(item, {KeyOfUser(uid), 1}, bytes, 1ms);
    return item;
  }
  static Reservation Promise(std::vector<UserPart> users,
                             ReservationScope scope = ReservationScope::kCluster) {
    return {.bytes_per_s = 1'000'000, .scope = scope, .ends = {}, .users = std::move(users)};
  }

  std::deque<FlowOrder::Item> items_;
  FlowOrder flows_;
  UserParts parts_;
  TimePoint now_{1'000'000'000};
};

TEST_F(UserPartsTest, WhoIsBelowHisPartIsOwedUntilHeHasHadIt) {
  Ask(7);
  FlowOrder::Item* const his = Ask(8);
  parts_.Set(Promise({{8, 10'000}}), 1, now_);
  EXPECT_EQ(parts_.Owed(flows_, now_), nullptr) << "nothing is saved yet";
  now_ += 1s;
  EXPECT_EQ(parts_.Owed(flows_, now_), his);
  parts_.Sent(KeyOfUser(7), 1'000'000, now_);
  EXPECT_EQ(parts_.Owed(flows_, now_), his);
  parts_.Sent(KeyOfUser(8), 1500, now_);  // 1000 were saved
  EXPECT_EQ(parts_.Owed(flows_, now_), nullptr);
  parts_.Sent(KeyOfUser(8), 1'000'000, now_);  // as one of the class
  now_ += 49ms;
  EXPECT_EQ(parts_.Owed(flows_, now_), nullptr);
  now_ += 2ms;
  EXPECT_EQ(parts_.Owed(flows_, now_), his);
}

TEST_F(UserPartsTest, TheOneFurthestBelowGoesFirst) {
  FlowOrder::Item* const first = Ask(7);
  FlowOrder::Item* const second = Ask(8);
  parts_.Set(Promise({{7, 10'000}, {8, 20'000}, {9, 1000}}), 1, now_);
  now_ += 50ms;
  parts_.Sent(KeyOfUser(8), 100, now_);
  EXPECT_EQ(parts_.Owed(flows_, now_), first);
  parts_.Sent(KeyOfUser(7), 400, now_);
  EXPECT_EQ(parts_.Owed(flows_, now_), second);
}

TEST_F(UserPartsTest, ANewMapKeepsWhatIsSavedAndEachOsdCounts) {
  FlowOrder::Item* const his = Ask(8);
  parts_.Set(Promise({{8, 10'000}}), 3, now_);
  now_ += 50ms;
  parts_.Set(Promise({{8, 10'000}}, ReservationScope::kOsd), 3, now_);
  EXPECT_EQ(parts_.Owed(flows_, now_), his) << "500 bytes";
  parts_.Sent(KeyOfUser(8), 1100, now_);
  now_ += 19ms;
  EXPECT_EQ(parts_.Owed(flows_, now_), nullptr);
  now_ += 2ms;
  EXPECT_EQ(parts_.Owed(flows_, now_), his) << "30000 bytes a second";
  parts_.Set(Promise({}), 3, now_);
  EXPECT_EQ(parts_.Owed(flows_, now_), nullptr);
}

}  // namespace
}  // namespace weir::client
