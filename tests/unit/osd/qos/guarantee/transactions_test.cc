// The second level: transactions share their class's tokens. And promises counted in requests.
#include "osd/qos/guarantee/transactions.h"

#include <gmock/gmock.h>

#include "common/testing/seed.h"
#include "tests/unit/osd/qos/scheduler_fixture.h"
#include "tests/unit/osd/qos/virtual_device.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using ::testing::HasSubstr;
using testing::kKiB;
using testing::kMiB;
using testing::Load;
using testing::Reserved;
using testing::Spec;

constexpr ClassId kGold{16}, kOther{17};

SchedulerConfig Strict(uint64_t rate) {
  SchedulerConfig base;
  base.token_rate = rate;
  base.best_effort_min = 0;
  base.depth = 1;
  return *ApplyProfile("odis", base);
}

using TransactionsTest = testing::SchedulerFixture;

// The class's leaf is empty and somebody is before it, but the transaction has tokens of its own.
TEST_F(TransactionsTest, OwnTokensOfATransactionComeFirst) {
  SchedulerConfig config = Strict(kMiB);
  config.dispatch = DispatchKind::kFifo;
  Scheduler scheduler(config, now_);
  ClassSpec spec = Reserved(kGold, kMiB);
  spec.transactions = {{1, kMiB / 2}};
  scheduler.SetClass(spec, now_);
  for (int i = 0; i < 12; ++i) Add(&scheduler, kGold, 64 * kKiB);
  while (Serve(&scheduler) != nullptr) {
  }  // the class's and the root's buckets are down, some of the twelve wait
  ASSERT_GT(scheduler.queued(), 0u);
  const Request* own = Add(&scheduler, kGold, 32 * kKiB, {.transaction = 1});
  const Request* served = Serve(&scheduler);
  EXPECT_EQ(served, own);
  EXPECT_TRUE(own->guaranteed);
}

// A user with a promise reads beside his own writers: what he is owed goes in his own order.
TEST_F(TransactionsTest, WhatAUserIsOwedGoesInTheOrderOfHisFlows) {
  Transactions transactions;
  transactions.Configure({{1, kMiB}, {2, kMiB}}, now_);
  FlowOrder flows;
  const auto add = [&](uint64_t bytes, uint32_t transaction, FlowKey flow) {
    Request* request = &requests_.emplace_back();
    request->bytes = bytes;
    request->transaction = transaction;
    request->sequence = requests_.size();
    flows.Add(&request->in_flow, flow, bytes, 1ms);
    transactions.Arrived(request, now_);
    return request;
  };
  const Request* oldest = add(256 * kKiB, 1, {1, 1});
  add(256 * kKiB, 1, {1, 1});
  now_ += 10s;
  EXPECT_EQ(transactions.Next(now_).owed, oldest);
  const Request* reader = add(4 * kKiB, 1, {1, 2});
  EXPECT_EQ(transactions.Next(now_).owed, reader);

  // Where flows are not those of users, what another one has next is not what this one is owed.
  FlowOrder shared;
  Transactions others;
  others.Configure({{1, kMiB}}, now_);
  Request first, second;
  first.bytes = second.bytes = 64 * kKiB;
  second.transaction = 1;
  shared.Add(&first.in_flow, {}, first.bytes, 1ms);
  shared.Add(&second.in_flow, {}, second.bytes, 1ms);
  others.Arrived(&first, now_);
  others.Arrived(&second, now_);
  now_ += 10s;
  EXPECT_EQ(others.Next(now_).owed, &second);
}

// Of 8 MiB/s and 100 requests/s a user with a part of 4 MiB/s is owed 100 small requests, not 1000.
// It does not matter from how many mounts he asks, which number their flows apart.
TEST_F(TransactionsTest, AUserIsOwedNoMoreThanHisPartNorThanHisClass) {
  const auto owed_in_ten_seconds = [this](uint64_t iops, uint64_t mounts) {
    SchedulerConfig config = Strict(20 * kMiB);
    config.dispatch = DispatchKind::kFifo;
    Scheduler scheduler(config, now_);
    ClassSpec spec = Reserved(kGold, 8 * kMiB);
    spec.reservation->iops = iops;
    spec.transactions = {{1, 4 * kMiB}};
    scheduler.SetClass(spec, now_);
    scheduler.SetClass(Spec(kOther, 1000), now_);
    std::deque<Request> requests;
    const auto add = [&](ClassId id, FlowKey flow, uint32_t transaction) {
      Request* request = &requests.emplace_back();
      request->class_id = id;
      request->bytes = 4 * kKiB;
      request->flow = flow;
      request->transaction = transaction;
      scheduler.Enqueue(request, now_);
    };
    std::pair<uint64_t, uint64_t> owed{0, 0};  // to him, to all
    for (const TimePoint end = now_ + 10s; now_ < end; now_ += 10ms) {
      for (uint64_t i = 0; i < 40; ++i) {
        add(kGold, {1 + i % mounts, 1}, 1);
        add(kGold, {9, 1}, 0);
        add(kOther, {}, 0);
      }
      while (const Request* request = Serve(&scheduler)) {
        if (!request->guaranteed) continue;
        owed.first += request->transaction == 1 ? request->bytes : 0;
        owed.second += request->bytes;
      }
    }
    return owed;
  };
  for (const uint64_t mounts : {1, 3}) {
    EXPECT_LE(owed_in_ten_seconds(100, mounts).second, 1020 * 4 * kKiB) << mounts;
    const auto [his, all] = owed_in_ten_seconds(0, mounts);
    EXPECT_GE(his, 40 * kMiB) << mounts;
    EXPECT_GE(all, 80 * kMiB) << mounts;
    EXPECT_LE(all, 81 * kMiB) << mounts;
  }
}

TEST_F(TransactionsTest, ACancelledRequestLeavesItsTransaction) {
  Scheduler scheduler(Strict(kMiB), now_);
  ClassSpec spec = Reserved(kGold, kMiB);
  spec.transactions = {{1, kMiB / 2}, {2, kMiB / 4}};
  scheduler.SetClass(spec, now_);
  Request* first = Add(&scheduler, kGold, 4 * kKiB, {.transaction = 1});
  Request* second = Add(&scheduler, kGold, 4 * kKiB, {.transaction = 1});
  EXPECT_TRUE(scheduler.Cancel(first, now_));
  EXPECT_EQ(Serve(&scheduler), second);
  EXPECT_EQ(Serve(&scheduler), nullptr);
}

// Random traffic and reconfiguration: everything that came goes, in order within each transaction.
TEST_F(TransactionsTest, NothingIsLostOrOvertakenWithinATransaction) {
  Prng prng(weir::testing::TestSeed());
  SchedulerConfig config = Strict(4 * kMiB);
  config.dispatch = DispatchKind::kFifo;
  Scheduler scheduler(config, now_);
  ClassSpec spec = Reserved(kGold, 2 * kMiB);
  scheduler.SetClass(spec, now_);
  scheduler.SetClass(Reserved(kOther, kMiB), now_);
  std::map<uint32_t, uint64_t> last;
  size_t served = 0;
  size_t overtaken = 0;
  const auto serve = [&] {
    Request* request = Serve(&scheduler);
    if (request == nullptr) return;
    ++served;
    if (request->class_id != kGold) return;
    overtaken += request->sequence < last[request->transaction] ? 1 : 0;
    last[request->transaction] = request->sequence;
  };
  for (int i = 0; i < 3000; ++i) {
    const ClassId id = prng.Chance(.7) ? kGold : kOther;
    const auto transaction = static_cast<uint32_t>(prng.Uniform(0, 3));
    Add(&scheduler, id, prng.Uniform(1, 64 * kKiB), {.transaction = transaction});
    now_ += Duration(prng.Uniform(0, 10'000'000));
    serve();
    if (i % 300 != 0) continue;
    spec.transactions.clear();
    for (uint32_t id2 = 1; id2 < 4; ++id2) {
      if (prng.Chance(.6)) spec.transactions.push_back({id2, kMiB / 2});
    }
    scheduler.SetClass(spec, now_);
  }
  while (scheduler.queued() > 0) {
    now_ += 5ms;
    serve();
  }
  EXPECT_EQ(served, requests_.size());
  EXPECT_EQ(overtaken, 0u);
}

TEST(CheckTransactionsTest, PartsMustFitIntoTheClass) {
  ClassSpec spec = Reserved(kGold, 20 * kMiB);
  spec.name = "gold";
  spec.transactions = {{1, 8 * kMiB}, {2, 12 * kMiB}};
  EXPECT_TRUE(CheckTransactions(spec).ok());
  spec.transactions.push_back({3, kMiB});
  const Status refused = CheckTransactions(spec);
  EXPECT_EQ(refused.code(), ErrorCode::kRefused);
  EXPECT_THAT(refused.message(), HasSubstr("transaction 3 of 'gold' wants 1MiB/s: 20MiB/s of"));
  spec.transactions = {{1, kMiB}, {1, kMiB}};
  EXPECT_EQ(CheckTransactions(spec).code(), ErrorCode::kInvalid);
  spec.transactions = {{0, kMiB}};
  EXPECT_EQ(CheckTransactions(spec).code(), ErrorCode::kInvalid);
}

// 500 requests a second of 4 KiB against somebody who fills the device with large ones.
double PromisedIops(uint64_t iops, uint64_t bytes_per_s, ReservationScope scope, double on_first) {
  SchedulerConfig config = Strict(40 * kMiB);
  Cluster cluster(2, config, 60 * kMiB);
  ClassSpec spec = Reserved(kGold, bytes_per_s, 0.01, scope);
  spec.reservation->iops = iops;
  cluster.SetClass(spec);
  cluster.SetClass(Spec(kOther));
  for (size_t osd = 0; osd < 2; ++osd) {
    cluster.Start({.class_id = kOther, .outstanding = 64, .bytes = 512 * kKiB, .osd = osd});
  }
  Prng prng(1);
  Load* gold = cluster.Start(
      {.class_id = kGold, .outstanding = 32, .bytes = 4 * kKiB, .route = [&](uint64_t) {
         return std::pair<size_t, size_t>(prng.Chance(on_first) ? 0 : 1, 0);
       }});
  cluster.RunTo(20s);
  return gold->Iops(2s, 20s);
}

TEST(IopsPromiseTest, CountsRequestsNotBytes) {
  EXPECT_GE(PromisedIops(500, 0, ReservationScope::kOsd, 1), 485);
  EXPECT_LT(PromisedIops(0, 0, ReservationScope::kOsd, 1), 250);  // without: it waits its turn
}

TEST(IopsPromiseTest, BothPromisesMustCoverTheHead) {
  // 1 MiB/s are 256 requests of 4 KiB: the smaller of the two is what is owed.
  EXPECT_NEAR(PromisedIops(2000, kMiB, ReservationScope::kOsd, 1),
              PromisedIops(0, kMiB, ReservationScope::kOsd, 1), 40);
}

TEST(IopsPromiseTest, HoldsForAllOsdsTogether) {
  for (double on_first : {.5, .9}) {
    const double total = PromisedIops(800, 0, ReservationScope::kCluster, on_first);
    EXPECT_GE(total, .95 * 800) << on_first;
    EXPECT_LE(total, 1.25 * 800) << on_first;  // the promise, and its share of the rest
  }
}

}  // namespace
}  // namespace weir::osd::qos
