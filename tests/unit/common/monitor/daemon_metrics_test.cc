#include "common/monitor/daemon_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::monitor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wire::ClassStats* AddClass(wire::OsdStatsReply* stats, uint32_t id, const std::string& name) {
  wire::ClassStats* row = stats->add_classes();
  row->set_class_id(id);
  row->set_name(name);
  return row;
}

std::string OsdPage(const wire::OsdStatsReply& stats) {
  MetricPage page;
  AddOsdMetrics(stats, &page);
  return page.Text();
}

TEST(DaemonMetricsTest, AnOsdSaysWhatItsClassesGotInBaseUnits) {
  wire::OsdStatsReply stats;
  stats.set_osd_id(3);
  stats.set_token_rate(100 << 20);
  stats.mutable_disk()->set_slow(true);
  wire::ClassStats* gold = AddClass(&stats, 16, "gold");
  gold->set_served_bytes(1 << 20);
  gold->set_queued_ops(7);
  gold->set_violation_seconds(2);
  gold->add_latency_ends_us(63);
  gold->add_latency_counts(9);
  gold->add_latency_ends_us(1087);
  gold->add_latency_counts(1);
  gold->set_latency_sum_us(1500);

  const std::string page = OsdPage(stats);
  EXPECT_THAT(page, HasSubstr("weir_osd_token_rate_bytes_per_second{osd=\"3\"} 104857600\n"));
  EXPECT_THAT(page, HasSubstr("weir_osd_disk_slow{osd=\"3\"} 1\n"));
  const std::string labels = "{osd=\"3\",class=\"gold\"} ";
  EXPECT_THAT(page, HasSubstr("weir_osd_class_served_bytes_total" + labels + "1048576\n"));
  EXPECT_THAT(page, HasSubstr("weir_osd_class_queued_requests" + labels + "7\n"));
  EXPECT_THAT(page, HasSubstr("weir_osd_class_violation_seconds_total" + labels + "2\n"));
  const std::string bucket = "weir_osd_class_latency_seconds_bucket{osd=\"3\",class=\"gold\",le=\"";
  EXPECT_THAT(page, HasSubstr(bucket + "6.4e-05\"} 9\n")) << page;
  EXPECT_THAT(page, HasSubstr(bucket + "0.001024\"} 9\n")) << page;
  EXPECT_THAT(page, HasSubstr(bucket + "0.002048\"} 10\n")) << page;
  EXPECT_THAT(page, HasSubstr(bucket + "+Inf\"} 10\n"));
  EXPECT_THAT(page, HasSubstr("weir_osd_class_latency_seconds_sum" + labels + "0.0015\n"));
}

// Goal: a cluster where classes come and go has as many series as it has classes.
TEST(DaemonMetricsTest, ClassesThatAreGoneShareOneLabel) {
  wire::OsdStatsReply stats;
  AddClass(&stats, 0, "")->set_served_bytes(1);
  AddClass(&stats, 16, "")->set_served_bytes(10);
  AddClass(&stats, 17, "")->set_served_bytes(20);
  const std::string page = OsdPage(stats);
  EXPECT_THAT(page,
              HasSubstr("weir_osd_class_served_bytes_total{osd=\"0\",class=\"removed\"} 30\n"));
  EXPECT_THAT(page,
              HasSubstr("weir_osd_class_served_bytes_total{osd=\"0\",class=\"best-effort\"} 1\n"));
}

wire::StatusReply TwoOsdsAndGold() {
  wire::StatusReply status;
  status.set_sessions(4);
  status.add_warnings("osd.1 is down");
  status.mutable_map()->add_osds()->set_up(true);
  status.mutable_map()->add_osds()->set_id(1);
  wire::ClassInfo* gold = status.mutable_map()->add_classes();
  gold->set_id(16);
  gold->set_name("gold");
  gold->set_weight(2);
  gold->mutable_reservation()->set_bytes_per_s(1000);
  gold->mutable_reservation()->set_scope("osd");
  return status;
}

TEST(DaemonMetricsTest, TheMdsSaysWhatWasPromisedAndWhoIsUp) {
  wire::ClassLoadReply load;
  load.add_classes()->set_class_id(16);
  load.mutable_classes(0)->set_operations(12);
  load.mutable_classes(0)->set_limited(5);
  load.add_classes()->set_class_id(99);
  MetricPage out;
  AddMdsMetrics(TwoOsdsAndGold(), load, &out);
  const std::string page = out.Text();
  EXPECT_THAT(page, HasSubstr("weir_mds_sessions 4\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_warnings 1\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_near_full 0\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_osd_up{osd=\"0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_osd_up{osd=\"1\"} 0\n"));
  EXPECT_THAT(
      page,
      HasSubstr("weir_class_reservation_bytes_per_second{class=\"gold\",scope=\"osd\"} 1000\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_class_operations_total{class=\"gold\"} 12\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_class_limited_operations_total{class=\"gold\"} 5\n"));
  EXPECT_THAT(page, HasSubstr("weir_mds_class_operations_total{class=\"removed\"} 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("weir_class_limit_bytes_per_second")));
}

// Goal: Prometheus takes the page: every family is announced once, before its samples, and has a
// HELP; all our names begin with weir_.
TEST(DaemonMetricsTest, PartsOfOneProcessShareTheirFamilies) {
  wire::OsdStatsReply stats;
  AddClass(&stats, 16, "gold");
  MetricPage out;
  AddOsdMetrics(stats, &out);
  stats.set_osd_id(1);
  AddOsdMetrics(stats, &out);
  AddMdsMetrics(TwoOsdsAndGold(), {}, &out);
  AddProcessMetrics("weirfs", &out);
  std::istringstream lines(out.Text());
  std::set<std::string> announced;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, kind;
    words >> mark;
    if (mark == "#") {
      words >> kind >> family;
      if (kind == "HELP") {
        EXPECT_TRUE(announced.insert(family).second) << family << " twice";
      }
      continue;
    }
    EXPECT_TRUE(line.starts_with(family)) << line << " outside of its family";
    EXPECT_TRUE(line.starts_with("weir_") || line.starts_with("process_")) << line;
  }
  EXPECT_TRUE(announced.contains("weir_build_info"));
  EXPECT_TRUE(announced.contains("process_cpu_seconds_total"));
  EXPECT_TRUE(announced.contains("process_open_fds"));
}

}  // namespace
}  // namespace weir::monitor
