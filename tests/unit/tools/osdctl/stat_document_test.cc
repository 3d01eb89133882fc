#include "tools/osdctl/stat_document.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

wire::ClusterMap TwoClasses() {
  wire::ClusterMap map;
  auto* best_effort = map.add_classes();
  best_effort->set_name("best-effort");
  auto* gold = map.add_classes();
  gold->set_id(16);
  gold->set_name("gold");
  gold->mutable_reservation()->set_bytes_per_s(1000);
  return map;
}

wire::OsdStatsReply Served(uint32_t osd, uint64_t gold_bytes, uint64_t best_effort_bytes) {
  wire::OsdStatsReply stats;
  stats.set_osd_id(osd);
  auto* gold = stats.add_classes();
  gold->set_class_id(16);
  gold->set_served_bytes(gold_bytes);
  gold->set_arrived_bytes(gold_bytes + 100);
  gold->mutable_recent_latency()->set_p99_us(10 * (osd + 1));
  gold->set_queued_ops(2);
  auto* rest = stats.add_classes();
  rest->set_class_id(0);
  rest->set_served_bytes(best_effort_bytes);
  rest->set_arrived_bytes(best_effort_bytes);
  return stats;
}

TEST(StatDocumentTest, KeepsTheKeysThatScriptsReadAndShowsIdleClasses) {
  wire::OsdStatsReply stats;
  stats.set_osd_id(3);
  stats.set_token_rate(7);
  const Json json = StatDocument(TwoClasses(), stats, std::nullopt);
  EXPECT_EQ(json["id"], 3);
  for (const char* key : {"token_rate_bytes_per_s", "base_token_rate_bytes_per_s",
                          "device_bytes_per_s", "classes", "window_s"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  ASSERT_EQ(json["classes"].size(), 2u);
  const Json& gold = json["classes"][1];
  EXPECT_EQ(gold["class"], "gold");
  EXPECT_EQ(gold["id"], 16);
  EXPECT_EQ(gold["reservation_bytes_per_s"], 1000);
  for (const char* key : {"served_bytes", "served_ops", "queued_ops", "guaranteed_bytes",
                          "surplus_bytes", "deadline_misses", "violation_seconds"}) {
    EXPECT_EQ(gold[key], 0) << key;
  }
  for (const char* key : {"p50", "p90", "p99", "p999"}) EXPECT_EQ(gold["latency_us"][key], 0);
  EXPECT_EQ(StatDocument(TwoClasses(), stats, 16)["classes"].size(), 1u);
}

TEST(StatDocumentTest, CountersOfARemovedClassStayVisible) {
  wire::ClusterMap map = TwoClasses();
  map.mutable_classes()->RemoveLast();
  const auto rows = RowsOf(map, Served(0, 5, 5), std::nullopt);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(ClassName(map, rows[1].class_id()), "class.16");
}

TEST(StatDocumentTest, RatesAddUpOverTheOsdsAndSharesToOne) {
  const StatsByOsd before = {{0, Served(0, 1000, 0)}, {1, Served(1, 0, 0)}};
  const StatsByOsd after = {{0, Served(0, 3000, 500)}, {1, Served(1, 1000, 500)}};
  const auto rates = RatesBetween(TwoClasses(), before, after, 2.0);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[1].name, "gold");
  EXPECT_EQ(rates[1].promised, 1000u);
  EXPECT_DOUBLE_EQ(rates[1].served, 1500);
  EXPECT_DOUBLE_EQ(rates[1].demand, 1500);
  EXPECT_DOUBLE_EQ(rates[1].share, 0.75);
  EXPECT_DOUBLE_EQ(rates[0].share, 0.25);
  EXPECT_EQ(rates[1].queued_ops, 4u);
  EXPECT_EQ(rates[1].p99_us, 20u);
}

TEST(StatDocumentTest, AVirtualDiskIsPromisedItsPeak) {
  wire::ClusterMap map = TwoClasses();
  map.add_osds()->mutable_qos()->set_token_rate(50'000);
  map.mutable_classes(1)->set_weight(1);
  map.mutable_classes(1)->mutable_reservation()->set_scope("cluster");
  map.mutable_classes(1)->set_type("rent-a-disk");
  map.mutable_classes(1)->set_peak_bytes_per_s(20'000);
  EXPECT_EQ(RatesBetween(map, {}, {}, 1)[1].promised, 20'000u);
}

TEST(StatDocumentTest, ShowsWhatWasBrokenMeanwhile) {
  StatsByOsd before = {{0, Served(0, 0, 0)}};
  StatsByOsd after = before;
  before[0].mutable_classes(0)->set_violation_seconds(5);
  after[0].mutable_classes(0)->set_violation_seconds(7);
  EXPECT_EQ(RatesBetween(TwoClasses(), before, after, 1)[1].new_violations, 2u);
  EXPECT_EQ(RatesBetween(TwoClasses(), after, before, 1)[1].new_violations, 0u)
      << "they were reset";
}

TEST(StatDocumentTest, ARestartedOrNewOsdAddsNothingToTheRates) {
  const StatsByOsd before = {{0, Served(0, 9000, 0)}};
  const StatsByOsd after = {{0, Served(0, 10, 0)}, {1, Served(1, 700, 0)}};
  for (const ClassRate& rate : RatesBetween(TwoClasses(), before, after, 1.0)) {
    EXPECT_EQ(rate.served, 0) << rate.name;
    EXPECT_EQ(rate.share, 0) << rate.name;
  }
}

}  // namespace
}  // namespace weir::osdctl
