#include "common/qos/waiting_flows.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <string>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

class WaitingFlowsTest : public ::testing::Test {
 protected:
  WaitingFlows::Ticket& Come(uint32_t uid, uint64_t opener, double cost_ns = 400) {
    WaitingFlows::Ticket& ticket = tickets_.emplace_back();
    ticket = {.key = {uid, opener}, .cost_ns = cost_ns};
    waiting_.Come(&ticket, now_, [&] { return FlowOwner{.uid = uid, .opener = opener}; });
    return ticket;
  }
  FlowMeter::Look LookNow() {
    FlowMeter::Look look = served_.LookAt(now_);
    waiting_.AddTo(&look, now_);
    return look;
  }
  FlowMeter::Report ReportNow() { return FlowMeter::ReportOf(LookNow(), 32); }

  TimePoint now_;
  FlowMeter served_{now_};
  WaitingFlows waiting_;
  std::list<WaitingFlows::Ticket> tickets_;
};

// Goal: who waits and was served nothing is there, too, and first when he asks for most.
TEST_F(WaitingFlowsTest, WhatWaitsCountsAsWhatIsAskedForAndNotAsWhatWasServed) {
  served_.Add({1, 1}, {.device_ns = 1000, .requests = 1}, now_, [] { return FlowOwner(); });
  for (int i = 0; i < 3; ++i) Come(2, 20);
  now_ += 10ms;
  FlowMeter::Report report = ReportNow();
  ASSERT_EQ(report.users.size(), 2u);
  EXPECT_EQ(report.users[0].owner.uid, 2u);
  EXPECT_EQ(report.users[0].use.waiting, 3u);
  EXPECT_EQ(report.users[0].use.waited, 30ms);
  EXPECT_EQ(report.users[0].use.requests, 0u);
  EXPECT_EQ(report.users[0].openers, 1u);
  EXPECT_EQ(report.openers[0].owner.opener, 20u);
  EXPECT_EQ(report.all.device_ns, 1000);
  EXPECT_EQ(report.all.waiting, 3u);
  waiting_.Leave(tickets_.front());
  report = ReportNow();
  EXPECT_EQ(report.users[1].use.waiting, 2u);
  EXPECT_EQ(report.users[1].use.waited, 20ms) << "of those that still wait";
  EXPECT_EQ(report.users[1].use.rank_ns(), 800);
  waiting_.Leave(*std::next(tickets_.begin()));
  waiting_.Leave(tickets_.back());
  EXPECT_EQ(ReportNow().users.size(), 1u);
  EXPECT_EQ(ReportNow().all.waited, 0ms);
}

// Goal: whoever comes and leaves in whatever order, what is told is what waits.
TEST_F(WaitingFlowsTest, IsWhatAListOfAllThatWaitSays) {
  Prng prng(testing::TestSeed());
  for (int step = 0; step < 20'000; ++step) {
    now_ += std::chrono::microseconds(prng.Uniform(0, 100));
    if (tickets_.empty() || prng.Chance(0.5)) {
      const auto user = static_cast<uint32_t>(prng.Uniform(1, 9));
      Come(user, prng.Uniform(1, 3), static_cast<double>(prng.Uniform(1, 9)) * 100);
    } else {
      const auto one =
          std::next(tickets_.begin(), static_cast<ptrdiff_t>(prng.Uniform(0, tickets_.size() - 1)));
      waiting_.Leave(*one);
      tickets_.erase(one);
    }
  }
  std::map<uint64_t, FlowUse> sums;
  for (const WaitingFlows::Ticket& ticket : tickets_) {
    sums[ticket.key.user] +=
        {.waiting = 1, .waiting_ns = ticket.cost_ns, .waited = now_ - ticket.came};
  }
  const FlowMeter::Report report = ReportNow();
  ASSERT_EQ(report.users.size(), sums.size());
  for (const FlowMeter::Row& row : report.users) {
    EXPECT_EQ(row.use.waiting, sums[row.owner.uid].waiting);
    EXPECT_EQ(row.use.waiting_ns, sums[row.owner.uid].waiting_ns);
    EXPECT_EQ(row.use.waited, sums[row.owner.uid].waited);
  }
}

// Goal: who was dropped for want of room is told again with what came since, and the rest of his
// that leaves takes nothing from that.
TEST_F(WaitingFlowsTest, WhoWasDroppedCountsFromTheNextOneOn) {
  WaitingFlows::Ticket& old = Come(1, 1, 1);
  for (uint32_t uid = 2; uid < 2 + FlowOrder::kFlowsMax; ++uid) Come(uid, uid, 100);
  Come(1, 1, 1e6);
  EXPECT_EQ(ReportNow().users[0].owner.uid, 1u);
  EXPECT_EQ(ReportNow().users[0].use.waiting, 1u);
  waiting_.Leave(old);
  EXPECT_EQ(ReportNow().users[0].use.waiting, 1u);
  EXPECT_EQ(ReportNow().all.waiting, FlowOrder::kFlowsMax + 1);
  while (!tickets_.empty()) {
    if (&tickets_.front() != &old) waiting_.Leave(tickets_.front());
    tickets_.pop_front();
  }
  EXPECT_EQ(ReportNow().users_seen, 0u);
  EXPECT_EQ(ReportNow().all.waiting, 0u);
}

// Goal: a look under a lock is short, however much waits, and copies no path.
TEST_F(WaitingFlowsTest, ALookCopiesWhoIsToldApartAndNotWhatWaits) {
  const auto path = std::make_shared<const std::string>("/a.slice");
  for (int i = 0; i < 100'000; ++i) {
    WaitingFlows::Ticket& ticket = tickets_.emplace_back();
    ticket.key = {1, 1};
    waiting_.Come(&ticket, now_, [&] { return FlowOwner{.by_cgroup = true, .path = path}; });
  }
  FlowMeter::Look look = LookNow();
  ASSERT_EQ(look.users.size() + look.openers.size(), 2u);
  EXPECT_EQ(look.users[0].second.owner.path, path);
  for (uint32_t uid = 0; uid < 3 * FlowOrder::kFlowsMax; ++uid) {
    Come(uid, uid);
    served_.Add({uid, uid}, {.requests = 1}, now_, [] { return FlowOwner(); });
  }
  look = LookNow();
  EXPECT_LE(look.users.size() + look.openers.size(), 4 * FlowOrder::kFlowsMax);
  EXPECT_GT(look.users.size() + look.openers.size(), 2 * FlowOrder::kFlowsMax);
}

}  // namespace
}  // namespace weir
