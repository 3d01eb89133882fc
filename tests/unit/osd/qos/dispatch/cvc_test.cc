#include "osd/qos/dispatch/cvc.h"

#include <gmock/gmock.h>

#include <deque>
#include <set>
#include <vector>

#include "common/base/prng.h"
#include "osd/qos/dispatch/cscan.h"
#include "osd/qos/dispatch/virtual_clock.h"

namespace weir::osd::qos {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr TimePoint At(double ms) {
  return TimePoint{static_cast<int64_t>(ms * 1e6)};
}

class CvcTest : public ::testing::Test {
 protected:
  CvcTest() {
    config_.iops_max = 100;  // s = 10 ms
    config_.fixed_estimate = std::chrono::microseconds(13'100);
    config_.late_mode = false;
  }
  Request* Make(uint64_t lba, TimePoint finish, OpKind op = OpKind::kRead) {
    requests_.emplace_back();
    Request& request = requests_.back();
    request.lba = lba;
    request.bytes = 1;
    request.op = op;
    request.finish_time = finish;
    request.sequence = requests_.size();
    return &request;
  }
  std::unique_ptr<Cvc> Build(bool vc = false) {
    return std::make_unique<Cvc>(config_, vc, &service_time_);
  }
  static std::vector<uint64_t> Drain(Dispatch* dispatch, TimePoint now = {}) {
    std::vector<uint64_t> order;
    while (dispatch->size() > 0) order.push_back(dispatch->Next({now, 0})->lba);
    return order;
  }

  CvcConfig config_;
  ServiceTime service_time_{0.9, 10ms};
  std::deque<Request> requests_;
};

TEST_F(CvcTest, TheElevatorGoesUntilTheLatestStart) {
  for (const bool late : {false, true}) {
    auto cvc = Build();
    cvc->Add(Make(900, At(50)));
    cvc->Add(Make(800, At(52)));
    cvc->Add(Make(100, At(100)));
    // est 13.1: 18 + 13.1 <= 32 < 19 + 13.1.
    EXPECT_EQ(cvc->Next({At(late ? 19 : 18), 0})->lba, late ? 900u : 100u);
  }
}

TEST_F(CvcTest, RequestsOnTheDiskTakeTimeToo) {
  auto cvc = Build();
  cvc->Add(Make(900, At(50)));
  cvc->Add(Make(100, At(100)));
  // LST = 40: 20 + 13.1 fits alone, not behind one that takes the mean of 10 ms.
  EXPECT_EQ(cvc->Next({At(20), 1})->lba, 900u);
}

TEST_F(CvcTest, RunMaxBoundsPicksOffTheFinishOrder) {
  config_.run_max = 2;
  auto cvc = Build();
  cvc->Add(Make(900, At(5'000)));
  for (uint64_t lba : {10, 20, 30, 40}) cvc->Add(Make(lba, At(9'000 + static_cast<double>(lba))));
  EXPECT_THAT(Drain(cvc.get()), ElementsAre(10, 20, 900, 30, 40));
}

TEST_F(CvcTest, ACheaperCandidateMayFitWhereTheFirstDoesNot) {
  for (int i = 0; i < 200; ++i) {
    service_time_.Add(OpKind::kRead, 20ms);
    service_time_.Add(OpKind::kWrite, 2ms);
  }
  config_.fixed_estimate = Duration(0);
  config_.candidates = 2;
  auto cvc = Build();
  cvc->Add(Make(900, At(50)));
  cvc->Add(Make(10, At(500), OpKind::kRead));
  cvc->Add(Make(20, At(500), OpKind::kWrite));
  EXPECT_EQ(cvc->Next({At(30), 0})->lba, 20u);  // LST = 40
}

TEST_F(CvcTest, LateModeServesTheElevatorOnceTheFirstIsLost) {
  config_.late_mode = true;
  auto cvc = Build();
  cvc->Add(Make(900, At(50)));
  cvc->Add(Make(100, At(100)));
  EXPECT_EQ(cvc->Next({At(50), 0})->lba, 900u);
  cvc->Add(Make(950, At(60)));
  cvc->Add(Make(951, TimePoint::Max()));  // best effort has no part in it
  EXPECT_EQ(cvc->Next({At(61), 0})->lba, 950u);
  EXPECT_EQ(cvc->Next({At(62), 0})->lba, 951u);  // in time again: everybody's turn
  EXPECT_EQ(cvc->Next({At(63), 0})->lba, 100u);
}

TEST_F(CvcTest, WithoutDeadlinesTheElevatorRules) {
  auto cvc = Build();
  for (uint64_t lba : {50, 10, 90}) cvc->Add(Make(lba, TimePoint::Max()));
  EXPECT_EQ(cvc->Urgent(), nullptr);
  EXPECT_THAT(Drain(cvc.get()), ElementsAre(10, 50, 90));
}

TEST_F(CvcTest, VcServesFinishTimesAndThenArrivals) {
  auto vc = Build(true);
  vc->Add(Make(50, TimePoint::Max()));
  vc->Add(Make(10, TimePoint::Max()));
  vc->Add(Make(90, At(70)));
  vc->Add(Make(20, At(60)));
  EXPECT_THAT(Drain(vc.get()), ElementsAre(20, 90, 50, 10));
}

// I-22 and I-24: with est = inf CVC is VC, with est = -inf C-SCAN; and each request that goes in
// comes out once.
TEST_F(CvcTest, ExtremeEstimatesGiveVcAndCscan) {
  for (const bool never_time : {false, true}) {
    config_.fixed_estimate = never_time ? Duration::max() : Duration::min();
    auto cvc = Build();
    auto vc = Build(true);
    Cscan cscan;
    Dispatch* twin = never_time ? static_cast<Dispatch*>(vc.get()) : &cscan;
    std::deque<Request> copies;
    Prng prng(11);
    std::set<uint64_t> inside;
    for (int step = 0; step < 4000; ++step) {
      if (inside.empty() || prng.Chance(0.5)) {
        Request* request =
            Make(prng.Uniform(0, 100'000), At(static_cast<double>(prng.Uniform(0, 10'000))));
        copies.push_back(*request);
        cvc->Add(request);
        twin->Add(&copies.back());
        ASSERT_TRUE(inside.insert(request->sequence).second);
      } else {
        const DispatchMoment moment{At(step), 0};
        const uint64_t served = cvc->Next(moment)->sequence;
        ASSERT_EQ(served, twin->Next(moment)->sequence) << "step " << step;
        ASSERT_EQ(inside.erase(served), 1u);
      }
    }
  }
}

// I-20: one request at a time, each service at most s, rates adding up to IOPSmax or less: nothing
// completes later than its finish time plus one service.
TEST_F(CvcTest, AFeasibleLoadMeetsItsFinishTimes) {
  config_.fixed_estimate = 10ms;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    auto cvc = Build();
    std::vector<ClassQueue> classes(4);
    std::vector<double> next(4, 0);  // arrival of the class's next request, ms
    const double shares[] = {10, 20, 30, 40};
    for (size_t i = 0; i < 4; ++i) classes[i].finish_rate = shares[i];
    double now = 0;
    for (int served = 0; served < 2000;) {
      for (size_t i = 0; i < 4; ++i) {
        while (next[i] <= now) {
          Request* request = Make(prng.Uniform(0, 1'000'000), {});
          StampFinishTime(&classes[i], request, Duration(0), At(next[i]));
          cvc->Add(request);
          next[i] += prng.Exponential(700 / shares[i]);  // more than it was promised
        }
      }
      if (cvc->size() == 0) {
        now = *std::min_element(next.begin(), next.end());
        continue;
      }
      const Request* request = cvc->Next({At(now), 0});
      now += 5 + 5 * prng.Real();
      ++served;
      ASSERT_LE(At(now).ns, (request->finish_time + 10ms).ns + 1000) << "seed " << seed;
    }
  }
}

TEST(VirtualClockTest, FinishTimesOfThePapersExample) {
  ClassQueue queue;
  queue.finish_rate = 50;
  Request request;
  std::vector<double> finish;
  for (double arrival : {0, 0, 100}) {
    StampFinishTime(&queue, &request, Duration(0), At(arrival));
    finish.push_back(static_cast<double>(request.finish_time.ns) / 1e6);
  }
  EXPECT_THAT(finish, ElementsAre(20, 40, 120));
}

TEST(VirtualClockTest, APromiseInBytesSpacesByBytes) {
  ClassQueue queue;
  queue.promised = 1'000'000;
  Request request;
  request.bytes = 50'000;
  StampFinishTime(&queue, &request, Duration(0), At(10));
  EXPECT_EQ(request.finish_time, At(60));
}

TEST(VirtualClockTest, NoPromiseNoDeadline) {
  ClassQueue queue;
  Request request;
  StampFinishTime(&queue, &request, Duration(0), At(10));
  EXPECT_EQ(request.finish_time, TimePoint::Max());
}

TEST(VirtualClockTest, AheadMaxForgivesSpareService) {
  ClassQueue free;
  ClassQueue bounded;
  free.finish_rate = bounded.finish_rate = 10;
  Request a;
  Request b;
  for (int i = 0; i < 50; ++i) {  // fifty requests at once, served by a disk with time to spare
    StampFinishTime(&free, &a, Duration(0), At(0));
    StampFinishTime(&bounded, &b, 300ms, At(0));
  }
  StampFinishTime(&free, &a, Duration(0), At(1000));
  StampFinishTime(&bounded, &b, 300ms, At(1000));
  EXPECT_EQ(a.finish_time, At(5100));
  EXPECT_EQ(b.finish_time, At(1100));
}

TEST(VirtualClockTest, ALatencyBoundIsARate) {
  ServiceContract contract;
  contract.bound = 120ms;
  contract.max_pending = 14;
  EXPECT_NEAR(FinishRate(contract, 630), 126.676, 0.001);
  contract.iops = 128;
  EXPECT_DOUBLE_EQ(FinishRate(contract, 630), 128);
  EXPECT_DOUBLE_EQ(FinishRate({}, 630), 0);
}

}  // namespace
}  // namespace weir::osd::qos
