// Goal: operations on names begin by weight between classes and fairly between users, limits and
// promises hold in operations per second, and nothing is lost. Method: a server in virtual time
// that takes a fixed time for each operation, and clients who ask again when they are answered.
#include "mds/service/class_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir::mds {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ClassId kGold{16};
constexpr ClassId kBulk{17};

// Somebody with so many jobs, each of which asks again `thinks` after its answer.
struct Client {
  ClassId class_id;
  ClassOrder::Terms terms;
  FlowKey flow;
  int jobs = 1;
  Duration thinks{0};
  uint32_t cost = 1;
  bool report = false;
  uint64_t done = 0;
};

class NameServer {
 public:
  explicit NameServer(Duration takes = microseconds(10)) : takes_(takes) {}
  ~NameServer() {
    for (ClassOrder::Item* item : order.DropAll()) Forget(item);
  }

  Client& Add(const Client& client) {
    clients_.push_back(client);
    for (int i = 0; i < client.jobs; ++i) asks_.emplace(now, &clients_.back());
    return clients_.back();
  }
  void RunFor(Duration span) {
    const TimePoint end = now + span;
    while (now < end) {
      while (!asks_.empty() && asks_.begin()->first <= now) Ask(asks_.begin());
      ClassOrder::Item* const next = order.Next(now);
      if (next == nullptr) {
        const TimePoint ask = asks_.empty() ? end : asks_.begin()->first;
        now = std::max(now + Duration(1), std::min({end, ask, order.NextAt()}));
        continue;
      }
      order.Take(next, now);
      Client* const client = items_.at(next).second;
      now += takes_ * client->cost;
      order.Done(next);
      Forget(next);
      ++client->done;
      asks_.emplace(now + client->thinks, client);
    }
  }

  ClassOrder order;
  TimePoint now{};

 private:
  using Asks = std::multimap<TimePoint, Client*>;
  void Ask(Asks::iterator ask) {
    Client* const client = ask->second;
    asks_.erase(ask);
    auto item = std::make_unique<ClassOrder::Item>();
    ClassOrder::Item* const added = item.get();
    items_.emplace(added, std::pair(std::move(item), client));
    order.Add(
        added,
        {.class_id = client->class_id,
         .terms = client->terms,
         .flow = client->flow,
         .counted_for = client->flow,
         .owner = {.uid = static_cast<uint32_t>(client->flow.user), .opener = client->flow.opener},
         .cost = client->cost,
         .report = client->report},
        now);
  }
  void Forget(ClassOrder::Item* item) { items_.erase(item); }

  const Duration takes_;
  std::list<Client> clients_;
  std::map<ClassOrder::Item*, std::pair<std::unique_ptr<ClassOrder::Item>, Client*>> items_;
  Asks asks_;
};

FlowMeter::Report FlowsOf(ClassOrder& order, ClassId id, TimePoint now) {
  return FlowMeter::ReportOf(order.FlowsOf(id, now), 32);
}

double Part(uint64_t mine, uint64_t others) {
  return static_cast<double>(mine) / static_cast<double>(mine + others);
}

TEST(ClassOrderTest, ClassesShareByWeightHoweverManyJobsTheyHave) {
  NameServer server;
  Client& gold = server.Add({.class_id = kGold, .terms = {.weight = 4}, .jobs = 4});
  Client& bulk = server.Add({.class_id = kBulk, .flow = {1, 1}, .jobs = 500});
  server.RunFor(seconds(1));
  EXPECT_NEAR(Part(gold.done, bulk.done), 0.8, 0.01);
  EXPECT_EQ(gold.done + bulk.done, 100'000u);
}

TEST(ClassOrderTest, UsersOfAClassShareEquallyAndSoDoTheirPrograms) {
  NameServer server;
  Client& few = server.Add({.class_id = kGold, .flow = {1, 10}, .jobs = 8});
  Client& many = server.Add({.class_id = kGold, .flow = {2, 20}, .jobs = 300});
  Client& other = server.Add({.class_id = kGold, .flow = {2, 21}, .jobs = 30});
  server.RunFor(seconds(1));
  EXPECT_NEAR(Part(few.done, many.done + other.done), 0.5, 0.02);
  EXPECT_NEAR(Part(many.done, other.done), 0.5, 0.02);
}

TEST(ClassOrderTest, WhoAsksOneAtATimeIsNextBesideAFloodOfHisClass) {
  NameServer alone;
  const Client asker{.class_id = kGold, .flow = {1, 10}, .thinks = microseconds(100)};
  Client& by_himself = alone.Add(asker);
  alone.RunFor(seconds(1));

  NameServer server;
  for (uint64_t i = 0; i < 16; ++i) {
    server.Add({.class_id = kGold, .flow = {2, i}, .jobs = 16});
  }
  Client& beside = server.Add(asker);
  server.RunFor(seconds(1));
  EXPECT_GT(beside.done, by_himself.done * 9 / 10) << "of " << by_himself.done;
}

TEST(ClassOrderTest, ListingsCountForWhatTheyAre) {
  NameServer server;
  Client& lists = server.Add({.class_id = kGold, .jobs = 4, .cost = 8});
  Client& looks = server.Add({.class_id = kBulk, .jobs = 4});
  server.RunFor(seconds(1));
  EXPECT_NEAR(Part(lists.done * 8, looks.done), 0.5, 0.01);
}

TEST(ClassOrderTest, IdleClassesEarnNoCredit) {
  NameServer server;
  server.Add({.class_id = kBulk, .jobs = 8});
  server.RunFor(seconds(1));
  Client& gold = server.Add({.class_id = kGold, .jobs = 8});
  server.RunFor(milliseconds(10));
  EXPECT_NEAR(static_cast<double>(gold.done), 500, 5);
}

TEST(ClassOrderTest, ALimitHoldsInEverySecondAndNobodyElse) {
  NameServer server;
  Client& gold = server.Add({.class_id = kGold, .terms = {.limit_per_s = 250}, .jobs = 64});
  Client& bulk = server.Add({.class_id = kBulk, .jobs = 4});
  uint64_t before = 0;
  for (int second = 0; second < 5; ++second) {
    server.RunFor(seconds(1));
    EXPECT_NEAR(static_cast<double>(gold.done - before), 250, 6);
    before = gold.done;
  }
  EXPECT_EQ(gold.done + bulk.done, 500'000u) << "the server idled";
  const auto loads = server.order.Loads();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_GT(loads[0].limited, gold.done * 9 / 10);
  EXPECT_EQ(loads[1].limited, 0u);
}

// 10 ms of the MDS would be 500 operations, five seconds of this limit.
TEST(ClassOrderTest, UsersShareAlsoALimitThatLeavesThemLittle) {
  NameServer server;
  const ClassOrder::Terms terms = {.limit_per_s = 100};
  Client& one_job = server.Add({.class_id = kBulk, .terms = terms, .flow = {1, 1}});
  Client& jobs = server.Add({.class_id = kBulk, .terms = terms, .flow = {2, 1}, .jobs = 21});
  for (int second = 0; second < 4; ++second) {
    const uint64_t one_before = one_job.done, others_before = jobs.done;
    server.RunFor(seconds(1));
    EXPECT_NEAR(one_job.done - one_before, 50, 3) << second;
    EXPECT_NEAR(jobs.done - others_before, 50, 3) << second;
  }
}

TEST(ClassOrderTest, UnusedLimitSavesUpLittle) {
  NameServer server;
  server.Add({.class_id = kGold, .terms = {.limit_per_s = 1000}});
  server.RunFor(milliseconds(1));
  // Nothing for ten seconds, then a burst.
  server.now += seconds(10);
  Client& burst = server.Add({.class_id = kGold, .terms = {.limit_per_s = 1000}, .jobs = 500});
  server.RunFor(milliseconds(100));
  EXPECT_LE(burst.done, 125u);
  EXPECT_GE(burst.done, 95u);
}

TEST(ClassOrderTest, WhatIsReportedIsNotHeldByTheLimitOfItsClass) {
  NameServer server;
  const ClassOrder::Terms terms{.limit_per_s = 10};
  Client& asks = server.Add({.class_id = kGold, .terms = terms, .jobs = 50});
  Client& reports = server.Add({.class_id = kGold, .terms = terms, .flow = {9, 9}, .report = true});
  server.RunFor(seconds(1));
  EXPECT_LE(asks.done, 12u);
  EXPECT_GT(reports.done, 99'000u);
  const auto loads = server.order.Loads();
  ASSERT_EQ(loads.size(), 1u) << "they are one class";
  EXPECT_GE(loads[0].operations, asks.done + reports.done);
}

TEST(ClassOrderTest, ALimitThatIsLiftedHoldsNobodyWhoWaits) {
  NameServer server;
  Client& gold = server.Add({.class_id = kGold, .terms = {.limit_per_s = 1}, .jobs = 100});
  server.RunFor(milliseconds(10));
  EXPECT_EQ(gold.done, 1u);
  server.order.Renew([](ClassId) { return ClassOrder::Terms(); }, server.now);
  gold.terms = {};
  server.RunFor(milliseconds(10));
  EXPECT_NEAR(static_cast<double>(gold.done), 1000, 5);
}

TEST(ClassOrderTest, APromiseIsKeptBesideHeavierClasses) {
  NameServer server(microseconds(100));  // 10'000 a second
  Client& gold =
      server.Add({.class_id = kGold, .terms = {.weight = 0.1, .promised_per_s = 3000}, .jobs = 16});
  Client& bulk = server.Add({.class_id = kBulk, .terms = {.weight = 10}, .jobs = 64});
  server.RunFor(seconds(2));
  EXPECT_NEAR(static_cast<double>(gold.done), 6000, 60);
  EXPECT_NEAR(static_cast<double>(bulk.done), 14'000, 60);
}

TEST(ClassOrderTest, APromiseIsAFloorAndNotAnExtra) {
  NameServer server(microseconds(100));
  Client& gold = server.Add({.class_id = kGold, .terms = {.promised_per_s = 3000}, .jobs = 16});
  Client& bulk = server.Add({.class_id = kBulk, .jobs = 64});
  server.RunFor(seconds(2));
  EXPECT_NEAR(Part(gold.done, bulk.done), 0.5, 0.02);
}

TEST(ClassOrderTest, APromiseOfMoreThanThereIsLeavesSomethingToOthers) {
  NameServer server(microseconds(100));
  server.Add({.class_id = kGold, .terms = {.promised_per_s = 1'000'000}, .jobs = 64});
  Client& bulk = server.Add({.class_id = kBulk, .jobs = 4});
  server.RunFor(seconds(1));
  EXPECT_NEAR(static_cast<double>(bulk.done), 10'000 / 16, 10);
}

TEST(ClassOrderTest, WhoWasPromisedMuchStandsBehindNobodyForLongWhenItEnds) {
  NameServer server(microseconds(100));
  Client& gold =
      server.Add({.class_id = kGold, .terms = {.promised_per_s = 1'000'000}, .jobs = 64});
  Client& bulk = server.Add({.class_id = kBulk, .jobs = 64});
  server.RunFor(seconds(10));
  server.order.Renew([](ClassId) { return ClassOrder::Terms(); }, server.now);
  gold.terms = {};
  const uint64_t before = gold.done;
  const uint64_t others = bulk.done;
  server.RunFor(milliseconds(200));
  EXPECT_NEAR(Part(gold.done - before, bulk.done - others), 0.5, 0.05);
}

// Goal: whoever comes, goes and changes terms, what waits is taken once, in the order of its flow,
// and classes that wait get their shares: the shares are checked above, here nothing may be lost.
TEST(ClassOrderTest, WhoIsDroppedLeavesItsReportsAndEverybodyElse) {
  ClassOrder order;
  const TimePoint now{0};
  std::array<ClassOrder::Item, 5> items;
  const auto add = [&](size_t i, uint64_t session, bool report) {
    order.Add(&items.at(i),
              {.class_id = ClassId(16), .flow = {session, 1}, .session = session, .report = report},
              now);
  };
  add(0, 2, false);
  add(1, 1, false);
  add(2, 2, true);
  add(3, 2, false);
  EXPECT_EQ(order.DropSession(2).size(), 2u);
  EXPECT_TRUE(order.DropSession(2).empty());
  add(4, 1, false);
  std::set<ClassOrder::Item*> begun;
  while (ClassOrder::Item* const next = order.Next(now)) {
    order.Take(next, now);
    begun.insert(next);
  }
  EXPECT_EQ(begun, (std::set<ClassOrder::Item*>{&items[1], &items[2], &items[4]}));
  for (ClassOrder::Item* const item : begun) order.Done(item);
  EXPECT_TRUE(order.DropAll().empty());
}

TEST(ClassOrderTest, NothingIsLostUnderRandomChanges) {
  Prng prng(testing::TestSeed());
  ClassOrder order;
  std::vector<std::unique_ptr<ClassOrder::Item>> items;
  std::vector<ClassOrder::Item*> begun;
  uint64_t taken = 0;
  TimePoint now{};
  const auto terms = [&prng](uint64_t id) -> ClassOrder::Terms {
    return {.weight = static_cast<double>(1 + id),
            .limit_per_s = prng.Chance(0.3) ? prng.Uniform(100, 10'000) : 0,
            .promised_per_s = prng.Chance(0.3) ? prng.Uniform(100, 10'000) : 0};
  };
  for (int step = 0; step < 20'000; ++step) {
    now += microseconds(prng.Uniform(0, 100));
    const uint64_t id = prng.Uniform(16, 20);
    if (prng.Chance(0.01)) {
      order.Renew([&terms](ClassId one) { return terms(one.value); }, now);
    } else if (prng.Chance(0.5)) {
      items.push_back(std::make_unique<ClassOrder::Item>());
      order.Add(items.back().get(),
                {.class_id = ClassId(static_cast<uint32_t>(id)),
                 .terms = terms(id),
                 .flow = {prng.Uniform(0, 3), prng.Uniform(0, 3)},
                 .cost = static_cast<uint32_t>(prng.Uniform(1, 8)),
                 .report = prng.Chance(0.1)},
                now);
    } else if (!begun.empty() && prng.Chance(0.5)) {
      order.Done(begun.back());
      begun.pop_back();
    } else if (ClassOrder::Item* next =
                   prng.Chance(0.5) ? order.Next(now) : order.NextOfLittle(now)) {
      order.Take(next, now);
      begun.push_back(next);
      ++taken;
    }
  }
  order.Renew([](ClassId) { return ClassOrder::Terms(); }, now);
  EXPECT_EQ(order.NextAt(), TimePoint::Max());
  while (ClassOrder::Item* const next = order.Next(now)) {
    order.Take(next, now);
    begun.push_back(next);
    ++taken;
  }
  EXPECT_EQ(taken, items.size());
  for (ClassOrder::Item* item : begun) order.Done(item);
  for (const ClassOrder::Load& load : order.Loads()) EXPECT_EQ(load.queued, 0u);
}

// Goal: whoever asks is told with what began of his, what waits and for how long.
TEST(ClassOrderTest, SaysWhoseOperationsBeganAndWhoseWait) {
  const ClassOrder::Terms limited{.limit_per_s = 100};
  NameServer server;
  server.Add({.class_id = kGold, .terms = limited, .flow = {1001, 10}, .jobs = 20});
  server.Add({.class_id = kGold, .terms = limited, .flow = {1001, 11}, .jobs = 1});
  server.Add({.class_id = kGold, .terms = limited, .flow = {1002, 20}, .thinks = milliseconds(40)});
  server.Add({.class_id = kBulk, .flow = {1003, 30}, .thinks = milliseconds(1), .cost = 8});
  server.RunFor(seconds(4));
  EXPECT_EQ(server.order.Classes(), (std::vector<ClassId>{kGold, kBulk}));
  const FlowMeter::Report gold = FlowsOf(server.order, kGold, server.now);
  EXPECT_NEAR(static_cast<double>(gold.all.requests), 400, 5);
  ASSERT_EQ(gold.users.size(), 2u);
  const FlowMeter::Row& many = gold.users[0];
  const FlowMeter::Row& few = gold.users[1];
  EXPECT_EQ(many.owner.uid, 1001u);
  EXPECT_EQ(many.openers, 2u);
  EXPECT_EQ(many.use.waiting, 21u);
  EXPECT_LE(few.use.waiting, 1u);
  EXPECT_EQ(gold.all.waiting, many.use.waiting + few.use.waiting);
  EXPECT_EQ(gold.all.requests, many.use.requests + few.use.requests);
  EXPECT_NEAR(static_cast<double>(few.use.requests), 90, 12) << "one in 40 ms, and its turn";
  EXPECT_EQ(few.use.light_requests, few.use.requests);
  // Little's law: 21 wait for 4 s.
  EXPECT_NEAR(ToSeconds(many.use.waited), 84, 2);
  EXPECT_LT(ToSeconds(few.use.waited), 1);
  EXPECT_EQ(gold.openers.size(), 3u);
  const FlowMeter::Report bulk = FlowsOf(server.order, kBulk, server.now);
  EXPECT_EQ(bulk.all.waiting, 0u);
  EXPECT_NEAR(bulk.all.device_ns / static_cast<double>(bulk.all.requests), 160e3, 1)
      << "a listing costs 8";
}

TEST(ClassOrderTest, WhoAskedLongAgoAndWhatWasDroppedIsForgotten) {
  ClassOrder order;
  TimePoint now;
  ClassOrder::Item began, dropped;
  const ClassOrder::Request request{
      .class_id = kGold, .flow = {1, 1}, .counted_for = {1, 1}, .session = 7};
  order.Add(&began, request, now);
  order.Take(order.Next(now), now);
  order.Done(&began);
  order.Add(&dropped, request, now);
  EXPECT_EQ(FlowsOf(order, kGold, now).all.waiting, 1u);
  order.DropSession(7);
  EXPECT_EQ(FlowsOf(order, kGold, now).all.waiting, 0u);
  EXPECT_EQ(FlowsOf(order, kGold, now).all.requests, 1u);
  now += 2 * FlowMeter::kTurn;
  EXPECT_EQ(FlowsOf(order, kGold, now).users_seen, 0u);
}

TEST(ClassOrderTest, TellsNoMoreThan1024UsersApart) {
  ClassOrder order;
  TimePoint now;
  std::list<ClassOrder::Item> items;
  for (uint64_t user = 0; user < 3 * FlowOrder::kFlowsMax; ++user) {
    order.Add(&items.emplace_back(),
              {.class_id = kGold, .flow = {user, user}, .counted_for = {user, user}}, now);
  }
  const FlowMeter::Report report = FlowsOf(order, kGold, now);
  EXPECT_LE(report.users_seen, FlowOrder::kFlowsMax);
  EXPECT_EQ(report.users.size(), 32u);
  EXPECT_EQ(report.all.waiting, 3 * FlowOrder::kFlowsMax) << "the sum loses nobody";
  order.DropAll();
  EXPECT_EQ(FlowsOf(order, kGold, now).users_seen, 0u);
}

}  // namespace
}  // namespace weir::mds
