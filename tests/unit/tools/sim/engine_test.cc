// The simulator's engine: time, loads, devices.
#include <gmock/gmock.h>

#include "tools/sim/devices/simple.h"
#include "tools/sim/engine/cluster.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr ClassId kOne{16};

SchedulerConfig NoQos(uint32_t depth) {
  SchedulerConfig config = *ApplyProfile("noqos", {});
  config.depth = depth;
  return config;
}

TEST(EventQueueTest, RunsInOrderOfTimeThenOfAsking) {
  EventQueue events;
  std::vector<int> order;
  events.At(TimePoint{20}, [&] { order.push_back(3); });
  events.At(TimePoint{10}, [&] { order.push_back(1); });
  events.At(TimePoint{10}, [&] {
    order.push_back(2);
    events.At(TimePoint{5}, [&] { order.push_back(9); });  // the past means now
  });
  events.At(TimePoint{31}, [&] { order.push_back(4); });
  events.RunTo(TimePoint{30});
  EXPECT_THAT(order, ElementsAre(1, 2, 9, 3));
  EXPECT_EQ(events.now(), TimePoint{30});
}

TEST(LoadTest, ThreadsComeAndGo) {
  Cluster cluster(1);
  cluster.AddOsd(NoQos(64), Slots(64, 64e6));
  Load* load = cluster.Start({.class_id = kOne, .outstanding = 8, .bytes = 10'000});
  cluster.RunTo(10s);
  load->SetOutstanding(32);
  cluster.RunTo(20s);
  load->SetOutstanding(0);
  cluster.RunTo(30s);
  load->SetOutstanding(8);
  cluster.RunTo(40s);
  EXPECT_NEAR(load->Rate(1s, 10s), 8e6, 2e5);  // each thread has a server to itself
  EXPECT_NEAR(load->Rate(11s, 20s), 32e6, 5e5);
  EXPECT_EQ(load->Rate(21s, 30s), 0);
  EXPECT_NEAR(load->Rate(31s, 40s), 8e6, 2e5);
  EXPECT_NEAR(load->MeanLatency(1s, 10s), 0.01, 5e-4);
}

TEST(LoadTest, ThinkTimeAndPaceSlowAThread) {
  Cluster cluster(1);
  cluster.AddOsd(NoQos(8), Flat(1e9));
  Load* thinker = cluster.Start({.class_id = kOne, .outstanding = 1, .bytes = 1000, .think = 10ms});
  Load* paced = cluster.Start({.class_id = kOne, .outstanding = 4, .bytes = 1000, .pace = 50e3});
  cluster.RunTo(10s);
  EXPECT_NEAR(thinker->Iops(0s, 10s), 100, 1);
  EXPECT_NEAR(paced->Rate(0s, 10s), 50e3, 500);
}

TEST(LoadTest, SeriesCutsTimeIntoWindows) {
  Cluster cluster(1);
  cluster.AddOsd(NoQos(1), Flat(1e6));
  Load* load = cluster.Start({.class_id = kOne, .outstanding = 1, .bytes = 100'000});
  cluster.At(2s, [&] { cluster.osd().SetDeviceRate(2e6); });
  cluster.RunTo(4s);
  EXPECT_THAT(load->Series(0s, 4s, 1s), ElementsAre(1e6, 1e6, 2e6, 2e6));
}

TEST(StatisticsTest, QuantilesMeansAndDeviations) {
  EXPECT_EQ(Quantile({}, .5), 0);
  EXPECT_EQ(Quantile({3, 1, 2}, .5), 2);
  EXPECT_EQ(Quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(Mean({1, 3}), 2);
  EXPECT_EQ(StandardDeviation({1, 3}), 1);
}

TEST(DeviceTest, ExponentialServersKeepTheirMean) {
  Cluster cluster(3);
  cluster.AddOsd(NoQos(4), Exponential(500));
  Load* load = cluster.Start({.class_id = kOne, .outstanding = 8});
  cluster.RunTo(100s);
  EXPECT_NEAR(load->Iops(0s, 100s), 500, 10);
  EXPECT_NEAR(ToSeconds(cluster.osd().busy_time()), 100, .1);
}

}  // namespace
}  // namespace weir::sim
