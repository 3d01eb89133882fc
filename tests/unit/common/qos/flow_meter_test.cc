#include "common/qos/flow_meter.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

using namespace std::chrono_literals;

class FlowMeterTest : public ::testing::Test {
 protected:
  // One request of that device time.
  void Use(uint32_t uid, uint64_t opener, double device_ns, bool light = false) {
    const FlowUse use{
        .device_ns = device_ns, .requests = 1, .bytes = 4096, .light_requests = light ? 1U : 0U};
    meter_.Add({uid, opener}, use, now_, [&] {
      ++asked_;
      return FlowOwner{.session = 7, .uid = uid, .opener = opener};
    });
  }

  FlowMeter::Report ReportNow(size_t most = 32) {
    return FlowMeter::ReportOf(meter_.LookAt(now_), most);
  }

  TimePoint now_;
  FlowMeter meter_{now_};
  int asked_ = 0;
};

TEST_F(FlowMeterTest, UsersAndTheirOpenersTheMostDeviceTimeFirst) {
  Use(1001, 10, 300);
  Use(1001, 11, 500);
  Use(1002, 20, 700, true);
  Use(1002, 20, 50);
  now_ += 2s;
  const FlowMeter::Report report = ReportNow();
  EXPECT_EQ(report.window, 2s);
  EXPECT_EQ(report.all.device_ns, 1550);
  EXPECT_EQ(report.users_seen, 2u);
  EXPECT_EQ(report.openers_seen, 3u);
  ASSERT_EQ(report.users.size(), 2u);
  EXPECT_EQ(report.users[0].owner.uid, 1001u);
  EXPECT_EQ(report.users[0].owner.session, 7u);
  EXPECT_EQ(report.users[0].use.device_ns, 800);
  EXPECT_EQ(report.users[0].openers, 2u);
  EXPECT_EQ(report.users[1].openers, 1u);
  ASSERT_EQ(report.openers.size(), 3u);
  EXPECT_EQ(report.openers[0].owner.opener, 20u);
  EXPECT_EQ(report.openers[0].use.requests, 2u);
  EXPECT_EQ(report.openers[0].use.bytes, 8192u);
  EXPECT_EQ(report.openers[0].use.light_requests, 1u);
  EXPECT_EQ(report.openers[2].owner.opener, 10u);
  EXPECT_EQ(ReportNow(1).openers.size(), 1u);
}

TEST_F(FlowMeterTest, TheLastFiveToTenSecondsCount) {
  Use(1, 1, 100);
  now_ += 5s;
  Use(2, 2, 100);
  now_ += 4s;
  EXPECT_EQ(ReportNow().users.size(), 2u);
  EXPECT_EQ(ReportNow().window, 9s);
  now_ += 1s;
  const FlowMeter::Report later = ReportNow();
  ASSERT_EQ(later.users.size(), 1u);
  EXPECT_EQ(later.users[0].owner.uid, 2u);
  EXPECT_EQ(later.window, 5s);
  Use(2, 2, 100);
  now_ += 1h;
  EXPECT_EQ(ReportNow().users_seen, 0u);
  EXPECT_EQ(ReportNow().all.device_ns, 0);
  Use(3, 3, 100);
  EXPECT_EQ(ReportNow().window, 1s) << "one request is no million a second";
}

// Goal: a stream of programs that come and go does not push out who uses the disk.
// Method: four tables full of small ones around a large one.
TEST_F(FlowMeterTest, MoreFlowsThanThereIsRoomForLeaveTheHeavyOnes) {
  Use(1, 1, 1000);
  for (uint64_t opener = 2; opener < 4 * FlowOrder::kFlowsMax; ++opener) Use(2, opener, 1);
  Use(1, 1, 1000);
  const FlowMeter::Report report = ReportNow();
  EXPECT_LE(report.openers_seen, FlowOrder::kFlowsMax);
  EXPECT_EQ(report.openers[0].owner.opener, 1u);
  EXPECT_EQ(report.openers[0].use.device_ns, 2000);
  EXPECT_EQ(report.users[0].use.requests, 4 * FlowOrder::kFlowsMax - 2) << "a user loses nothing";
  EXPECT_EQ(report.openers.size(), 32u);
  const int asked = asked_;
  Use(1, 1, 1000);
  EXPECT_EQ(asked_, asked) << "who is known is not asked for again";
}

// Goal: a report can be made without whatever guards the meter.
TEST_F(FlowMeterTest, ALookDoesNotChangeAnyMore) {
  Use(1, 1, 100);
  now_ += FlowMeter::kTurn;
  Use(1, 1, 100);
  const FlowMeter::Look look = meter_.LookAt(now_);
  EXPECT_EQ(look.users.size(), 1u) << "the table before is shared";
  Use(2, 2, 100);
  now_ += FlowMeter::kTurn;
  Use(3, 3, 100);
  const FlowMeter::Report report = FlowMeter::ReportOf(look, 32);
  EXPECT_EQ(report.users_seen, 1u);
  EXPECT_EQ(report.all.device_ns, 200);
}

TEST(FlowOwnerTest, IsCountedAsUserWhateverKindButByCgroup) {
  FlowSource source{.session = 7, .uid = 1001, .opener = 4711, .cgroup = "/a\nb"};
  const FlowKey user = CountedKeyOf(source);
  EXPECT_EQ(OwnerOf(source).cgroup(), "");
  for (const FlowKind kind : {FlowKind::kOpener, FlowKind::kNone}) {
    source.kind = kind;
    EXPECT_EQ(CountedKeyOf(source), user);
    EXPECT_EQ(OwnerOf(source).uid, 1001u);
  }
  source.kind = FlowKind::kCgroup;
  EXPECT_NE(CountedKeyOf(source), user);
  EXPECT_TRUE(OwnerOf(source).by_cgroup);
  EXPECT_EQ(OwnerOf(source).cgroup(), "/a?b") << "it goes to terminals";
}

// Goal: whatever paths senders name, a class takes no 16 MiB. Method: more cgroups than there is
// room for, each of the longest path, in both tables.
TEST_F(FlowMeterTest, LongPathsTakeNoMoreRoomThanThereIs) {
  const auto use = [&](uint64_t user) {
    meter_.Add({user, user}, {.device_ns = user == 1 ? 1000.0 : 1, .requests = 1}, now_, [&] {
      return OwnerOf({.kind = FlowKind::kCgroup,
                      .uid = static_cast<uint32_t>(user),
                      .opener = user,
                      .cgroup = std::string(5000, 'x')});
    });
  };
  for (uint64_t user = 1; user <= 2 * FlowOrder::kFlowsMax; ++user) use(user);
  now_ += FlowMeter::kTurn;
  for (uint64_t user = 1; user <= 2 * FlowOrder::kFlowsMax; ++user) use(user);
  const FlowMeter::Report report = ReportNow(SIZE_MAX);
  for (const auto& rows : {report.users, report.openers}) {
    size_t bytes = 0;
    for (const FlowMeter::Row& row : rows) bytes += row.owner.cgroup().size();
    EXPECT_LE(bytes, 2 * FlowTable<FlowUse>::kPathBytesMax);
    EXPECT_GE(bytes, FlowTable<FlowUse>::kPathBytesMax / 2);
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows[0].owner.uid, 1u) << "the heavy one stays";
    EXPECT_EQ(rows[0].owner.cgroup().size(), 4096u);
  }
  EXPECT_EQ(report.all.requests, 4 * FlowOrder::kFlowsMax) << "the sum loses nobody";
}

TEST(FlowTableTest, DropsThoseWithTheLeastAlsoWhereManyHaveAsMuch) {
  FlowTable<FlowUse> table;
  const auto add = [&](uint64_t user, double device_ns) {
    table.Find({user, 0}, [] { return FlowOwner(); }).device_ns += device_ns;
  };
  for (uint64_t user = 0; user < FlowOrder::kFlowsMax; ++user) add(user, user % 3 == 0 ? 1 : 5);
  add(FlowOrder::kFlowsMax, 5);
  EXPECT_EQ(table.entries().size(), FlowOrder::kFlowsMax / 2 + 1);
  for (const auto& [key, entry] : table.entries()) EXPECT_EQ(entry.fact.device_ns, 5) << key.user;
}

TEST_F(FlowMeterTest, AsManyUsersAsOpeners) {
  for (uint32_t uid = 0; uid < 3 * FlowOrder::kFlowsMax; ++uid) Use(uid, uid, 1 + uid);
  EXPECT_LE(ReportNow().users_seen, FlowOrder::kFlowsMax);
  EXPECT_EQ(ReportNow().users[0].owner.uid, 3 * FlowOrder::kFlowsMax - 1);
}

}  // namespace
}  // namespace weir
