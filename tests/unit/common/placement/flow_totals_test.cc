#include "common/placement/flow_totals.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/qos/waiting_flows.h"
#include "common/wire/osd.pb.h"

namespace weir {
namespace {

void AddUser(wire::FlowsOfClass* flows, uint64_t session, uint32_t uid, uint64_t device_us) {
  wire::FlowStats* row = flows->add_users();
  row->set_session(session);
  row->mutable_flow()->set_uid(uid);
  row->set_device_us(device_us);
  row->set_requests(10);
  row->set_openers(2);
  flows->set_device_us(flows->device_us() + device_us);
}

TEST(FlowTotalsTest, WhoUsesSeveralDisksIsOneRowAndTheBusiestIsFirst) {
  wire::FlowsOfClass first, second, sum;
  AddUser(&first, 1, 1001, 500);
  AddUser(&first, 1, 1002, 400);
  first.set_users_seen(2);
  first.set_window_s(7);
  AddUser(&second, 1, 1002, 300);
  AddUser(&second, 2, 1001, 50);
  second.set_users_seen(2);
  second.set_window_s(6);
  AddFlows(first, &sum);
  AddFlows(second, &sum);
  ASSERT_EQ(sum.users_size(), 3);
  EXPECT_EQ(sum.users(0).flow().uid(), 1002u);
  EXPECT_EQ(sum.users(0).device_us(), 700u);
  EXPECT_EQ(sum.users(0).requests(), 20u);
  EXPECT_EQ(sum.users(0).openers(), 2u);
  EXPECT_EQ(sum.users(2).session(), 2u) << "the same uid of another mount is another user";
  EXPECT_EQ(sum.device_us(), 1250u);
  EXPECT_EQ(sum.users_seen(), 3u);
  EXPECT_EQ(sum.window_s(), 7);
}

TEST(FlowTotalsTest, AMeterSaysWhatItHas) {
  TimePoint now;
  FlowMeter meter(now);
  WaitingFlows queue;
  const auto owner = [] {
    return FlowOwner{.session = 7,
                     .by_cgroup = true,
                     .path = std::make_shared<const std::string>("/a"),
                     .opener = 4711};
  };
  meter.Add({1, 2}, {.device_ns = 5000, .requests = 3, .light_requests = 2}, now, owner);
  WaitingFlows::Ticket ticket{.key = {1, 2}};
  queue.Come(&ticket, now, owner);
  now += std::chrono::milliseconds(9);
  FlowMeter::Look look = meter.LookAt(now);
  queue.AddTo(&look, now);
  wire::FlowsOfClass flows;
  ToWire(FlowMeter::ReportOf(look, 32), &flows);
  EXPECT_EQ(flows.window_s(), 1);
  EXPECT_EQ(flows.device_us(), 5u);
  EXPECT_EQ(flows.requests(), 3u);
  EXPECT_EQ(flows.waiting(), 1u);
  EXPECT_EQ(flows.waited_us(), 9000u);
  ASSERT_EQ(flows.users_size(), 1);
  const wire::FlowStats& user = flows.users(0);
  EXPECT_EQ(FlowName(user), "cgroup /a") << "a user has no opener";
  EXPECT_EQ(user.session(), 7u);
  EXPECT_EQ(user.openers(), 1u);
  EXPECT_EQ(user.waiting(), 1u);
  EXPECT_EQ(user.waited_us(), 9000u);
  EXPECT_TRUE(IsMostlyLight(user));
  ASSERT_EQ(flows.openers_size(), 1);
  EXPECT_EQ(flows.openers(0).flow().opener(), 4711u);
}

TEST(FlowTotalsTest, NoMoreThan32Stay) {
  wire::FlowsOfClass one, sum;
  for (uint32_t uid = 0; uid < 40; ++uid) AddUser(&one, 1, uid, uid);
  AddFlows(one, &sum);
  ASSERT_EQ(sum.users_size(), 32);
  EXPECT_EQ(sum.users(0).flow().uid(), 39u);
  EXPECT_EQ(sum.users(31).flow().uid(), 8u);
}

TEST(FlowTotalsTest, NamesForPeople) {
  wire::FlowStats row;
  row.mutable_flow()->set_uid(1001);
  EXPECT_EQ(FlowName(row), "uid 1001");
  row.mutable_flow()->set_opener(4711);
  EXPECT_EQ(FlowName(row), "pid 4711 (uid 1001)");
  row.mutable_flow()->set_kind(wire::Flow::CGROUP);
  row.mutable_flow()->set_cgroup("/a.slice");
  EXPECT_EQ(FlowName(row), "pid 4711 (cgroup /a.slice)");
  row.mutable_flow()->clear_opener();
  EXPECT_EQ(FlowName(row), "cgroup /a.slice");
  row.mutable_flow()->clear_cgroup();
  EXPECT_EQ(FlowName(row), "no known cgroup");
  row.mutable_flow()->clear_kind();
  row.mutable_flow()->set_uid(kUidOfMount);
  EXPECT_EQ(FlowName(row), "the mount");
}

}  // namespace
}  // namespace weir
