#include "osd/qos/dispatch/finish_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "common/base/prng.h"

namespace weir::osd::qos {
namespace {

class FinishOrderTest : public ::testing::Test {
 protected:
  Request* At(int64_t finish) {
    requests_.emplace_back();
    requests_.back().finish_time = TimePoint{finish};
    requests_.back().sequence = ++sequence_;
    return &requests_.back();
  }
  // Eq. (4) as the paper writes it, from the tail.
  static int64_t ByDefinition(std::vector<Request*> requests, int64_t service) {
    std::sort(requests.begin(), requests.end(), [](const Request* a, const Request* b) {
      return a->finish_time < b->finish_time ||
             (a->finish_time == b->finish_time && a->sequence < b->sequence);
    });
    int64_t latest = FinishOrder::kNever;
    for (auto at = requests.rbegin(); at != requests.rend(); ++at) {
      latest = std::min(latest, (*at)->finish_time.ns);
      if (latest != FinishOrder::kNever) latest -= service;
    }
    return latest;
  }
  std::deque<Request> requests_;
  uint64_t sequence_ = 0;
};

TEST_F(FinishOrderTest, LatestStartsOfThePapersExample) {
  FinishOrder order(Duration(10));
  Request* first = At(50);
  Request* second = At(52);
  order.Add(At(100));
  EXPECT_EQ(order.LatestStart(), 90);
  order.Add(second);
  EXPECT_EQ(order.LatestStart(), 42);
  order.Add(first);
  EXPECT_EQ(order.LatestStart(), 32);
  EXPECT_EQ(order.First(), first);
  order.Remove(*first);
  EXPECT_EQ(order.LatestStart(), 42);
}

TEST_F(FinishOrderTest, WithoutADeadlineThereIsNoHurry) {
  FinishOrder order(Duration(10));
  EXPECT_EQ(order.LatestStart(), FinishOrder::kNever);
  Request* first = At(FinishOrder::kNever);
  order.Add(first);
  order.Add(At(FinishOrder::kNever));
  EXPECT_EQ(order.LatestStart(), FinishOrder::kNever);
  EXPECT_EQ(order.First(), first);  // by arrival
  order.Add(At(70));
  EXPECT_EQ(order.LatestStart(), 60);
}

TEST_F(FinishOrderTest, AnotherServiceTimeMovesAllStarts) {
  FinishOrder order(Duration(10));
  for (int64_t finish : {50, 52, 100}) order.Add(At(finish));
  order.SetService(Duration(20));
  EXPECT_EQ(order.LatestStart(), 12);  // 52 - 2 * 20
}

// Goal: the tree's LST is eq. (4)'s whatever comes and goes. Method: 3,000 random insertions and
// removals, many with equal finish times, compared with the definition.
TEST_F(FinishOrderTest, AgreesWithTheDefinitionUnderAnyMix) {
  Prng prng(7);
  FinishOrder order(Duration(10));
  std::vector<Request*> inside;
  for (int step = 0; step < 3000; ++step) {
    if (inside.empty() || prng.Chance(0.52)) {
      const bool free = prng.Chance(0.1);
      inside.push_back(At(free ? FinishOrder::kNever : static_cast<int64_t>(prng.Uniform(0, 500))));
      order.Add(inside.back());
    } else {
      const size_t which = prng.Uniform(0, inside.size() - 1);
      order.Remove(*inside[which]);
      inside[which] = inside.back();
      inside.pop_back();
    }
    ASSERT_EQ(order.size(), inside.size());
    ASSERT_EQ(order.LatestStart(), ByDefinition(inside, 10)) << "step " << step;
  }
}

}  // namespace
}  // namespace weir::osd::qos
