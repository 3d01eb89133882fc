#include "common/monitor/cluster_history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weir::monitor {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

constexpr WallTime kStarted{5'000'000'000};

// A cluster of one OSD that serves the class gold, number 16.
class ClusterHistoryTest : public ::testing::Test {
 protected:
  void After(Duration length, uint64_t served_bytes, uint64_t latency_us) {
    now_ += length;
    served_ += served_bytes;
    if (served_bytes > 0) ++latencies_[latency_us];
    history_.Add(Now());
  }

  Look Now() {
    Look look;
    look.at = now_;
    look.wall = {kStarted.ns + now_.ns};
    wire::ClusterMap& map = *look.status.mutable_map();
    wire::OsdInfo* osd = map.add_osds();
    osd->set_up(true);
    osd->set_capacity_bytes(1000);
    map.add_classes()->set_name("best-effort");
    wire::ClassInfo* gold = map.add_classes();
    gold->set_id(16);
    gold->set_name("gold");
    gold->mutable_reservation()->set_bytes_per_s(700);
    wire::ClassStats* row = look.osds[0].add_classes();
    row->set_class_id(16);
    row->set_served_bytes(served_);
    row->set_arrived_bytes(2 * served_);
    row->set_served_ops(served_ / 10);
    for (const auto& [end, requests] : latencies_) {
      row->add_latency_ends_us(end);
      row->add_latency_counts(requests);
    }
    return look;
  }

  Json Document(uint64_t since = 0) { return Json::parse(history_.Document(since)); }
  // The row of gold in the newest sample, by column.
  Json Newest() {
    const Json document = Document();
    Json row;
    const Json& rows = document["samples"].back()["rows"];
    if (rows.empty()) return row;
    for (size_t i = 0; i < rows[0].size(); ++i) row[document["columns"][i]] = rows[0][i];
    return row;
  }

  ClusterHistory history_{kStarted};
  TimePoint now_;
  uint64_t served_ = 0;
  std::map<uint64_t, uint64_t> latencies_;
};

TEST_F(ClusterHistoryTest, EachSampleSaysWhatHappenedInItsInterval) {
  After(seconds(1), 500, 100);
  After(seconds(2), 3000, 900);
  const Json row = Newest();
  EXPECT_EQ(row["id"], 16);
  EXPECT_EQ(row["served_bytes_per_s"], 1500);
  EXPECT_EQ(row["demand_bytes_per_s"], 3000);
  EXPECT_EQ(row["served_per_s"], 150);
  EXPECT_EQ(row["p50_us"], 900);
  EXPECT_EQ(Document()["samples"].size(), 1u) << "one look is no interval";

  After(seconds(1), 0, 0);
  EXPECT_TRUE(Newest().is_null()) << "a class that rests takes no room";
}

TEST_F(ClusterHistoryTest, NamesWhoUsesAClass) {
  Look look = Now();
  look.status.add_mounts()->set_client_name("web-3");
  look.status.mutable_mounts(0)->set_session(7);
  wire::FlowsOfClass* flows = look.osds[0].mutable_classes(0)->mutable_flows();
  flows->set_window_s(5);
  flows->set_device_us(1000);
  for (uint32_t uid = 0; uid < 9; ++uid) {
    wire::FlowStats* user = flows->add_users();
    user->mutable_flow()->set_uid(uid);
    user->set_session(uid == 0 ? 7 : 8);
    user->set_device_us(500 - uid);
    user->set_bytes(50);
    user->set_requests(10);
    user->set_light_requests(10);
  }
  wire::ClassLoad* names = look.names.add_classes();
  names->set_class_id(16);
  names->mutable_flows()->set_window_s(5);
  names->mutable_flows()->set_device_us(1000);
  wire::FlowStats* asker = names->mutable_flows()->add_users();
  asker->mutable_flow()->set_uid(1001);
  asker->set_session(7);
  asker->set_device_us(250);
  asker->set_requests(15);
  asker->set_waiting(5);
  asker->set_waited_us(20'000);
  history_.Add(look);
  const Json document = Document();
  const Json& gold = document["classes"][1];
  EXPECT_EQ(gold["flow"], "user");
  EXPECT_EQ(gold["flows"]["users_seen"], 9);
  ASSERT_EQ(gold["flows"]["users"].size(), 5u);
  EXPECT_EQ(gold["flows"]["users"][0], (Json{{"who", "uid 0"},
                                             {"client", "web-3"},
                                             {"share", 0.5},
                                             {"requests_per_s", 2.0},
                                             {"bytes_per_s", 10.0},
                                             {"light", true}}));
  EXPECT_TRUE(gold["flows"]["users"][1]["client"].is_null());
  EXPECT_EQ(document["classes"][0]["flows"]["users"], Json::array());
  EXPECT_EQ(gold["names"]["users"], (Json::array({{{"who", "uid 1001"},
                                                   {"client", "web-3"},
                                                   {"share", 0.25},
                                                   {"operations_per_s", 3.0},
                                                   {"waiting", 5},
                                                   {"wait_us", 1000},
                                                   {"light", false}}})));
  EXPECT_EQ(document["classes"][0]["names"]["users"], Json::array());
}

// Goal: an MDS that does not tell who asks for names leaves the rest of the page.
TEST_F(ClusterHistoryTest, ShowsTheOsdsPartWithoutTheNames) {
  After(seconds(1), 500, 100);
  EXPECT_TRUE(Document()["names_missing"].is_null());
  now_ += seconds(1);
  served_ += 500;
  Look look = Now();
  look.names_missing = "timed out";
  history_.Add(look);
  EXPECT_EQ(Document()["names_missing"], "timed out");
  EXPECT_EQ(Document()["health"], "ok");
  EXPECT_EQ(Newest()["served_bytes_per_s"], 500);
  EXPECT_EQ(Document()["classes"][1]["names"]["users"], Json::array());
}

TEST_F(ClusterHistoryTest, SaysWhatAClassIsPromisedByItsReservationOrItsType) {
  Look look = Now();
  history_.Add(look);
  EXPECT_EQ(Document()["classes"][1]["promised_bytes_per_s"], 700);
  look.status.mutable_map()->mutable_osds(0)->mutable_qos()->set_token_rate(10'000);
  wire::ClassInfo* gold = look.status.mutable_map()->mutable_classes(1);
  gold->set_weight(1);
  gold->mutable_reservation()->set_scope("cluster");
  gold->set_type("rent-a-disk");
  gold->set_peak(0.3);
  history_.Add(look);
  EXPECT_EQ(Document()["classes"][1]["promised_bytes_per_s"], 3000);
}

TEST_F(ClusterHistoryTest, CountersThatBeganAnewAreNoNegativeRate) {
  After(seconds(1), 5000, 100);
  served_ = 0;
  latencies_.clear();
  After(seconds(1), 100, 100);
  EXPECT_TRUE(Newest().is_null()) << Newest();
  After(seconds(1), 100, 100);
  EXPECT_EQ(Newest()["served_bytes_per_s"], 100);
}

TEST_F(ClusterHistoryTest, OneWhoAsksAgainGetsOnlyWhatIsNew) {
  for (int i = 0; i < 4; ++i) After(seconds(1), 10, 1);
  EXPECT_EQ(Document()["samples"].size(), 3u);
  const Json rest = Document(2);
  ASSERT_EQ(rest["samples"].size(), 1u);
  EXPECT_EQ(rest["samples"][0]["number"], 3);
  EXPECT_EQ(Document(3)["samples"].size(), 0u);
  EXPECT_EQ(Document(77)["samples"].size(), 3u) << "a number of a daemon before this one";
}

TEST_F(ClusterHistoryTest, RemembersSomeMinutesAndNoMore) {
  for (size_t i = 0; i < ClusterHistory::kSamples + 50; ++i) After(seconds(1), 10, 1);
  const Json samples = Document()["samples"];
  EXPECT_EQ(samples.size(), ClusterHistory::kSamples);
  EXPECT_EQ(samples.back()["number"], ClusterHistory::kSamples + 49);
}

TEST_F(ClusterHistoryTest, SaysWhatIsWrong) {
  EXPECT_EQ(Document()["health"], "unhealthy") << "nobody has looked yet";
  After(seconds(1), 0, 0);
  EXPECT_EQ(Document()["health"], "ok");
  EXPECT_EQ(Document()["osds"][0]["capacity_bytes"], 1000);

  history_.AddSilence("timed out");
  EXPECT_EQ(Document()["troubles"][0], "the MDS does not answer: timed out");

  Look look = Now();
  look.osds[0].mutable_disk()->set_slow(true);
  look.osds[0].mutable_disk()->set_bytes_per_s(30 << 20);
  look.osds[0].set_base_token_rate(60 << 20);
  look.osds[0].set_checksum_errors(2);
  history_.Add(look);
  EXPECT_EQ(Document()["troubles"][0], "osd.0 found 2 damaged blocks: see its log for the objects");
  EXPECT_EQ(Document()["troubles"][1],
            "osd.0 is slower than promised: it gives 30MiB/s, its token rate is 60MiB/s (osdctl "
            "profile 0 --apply, or another disk)");

  look.osds.clear();
  look.silence[0] = "timed out";
  look.status.mutable_map()->mutable_osds(0)->set_endpoint("tcp://here:1");
  wire::OsdInfo* gone = look.status.mutable_map()->add_osds();
  gone->set_id(7);
  gone->set_endpoint("tcp://there:1");
  look.status.add_warnings("promises exceed the token rate of osd.0");
  const Json expected = {"osd.0 at tcp://here:1 does not answer: timed out",
                         "osd.7 is down (last seen at tcp://there:1)",
                         "promises exceed the token rate of osd.0"};
  history_.Add(look);
  EXPECT_EQ(Document()["troubles"], expected);
  EXPECT_EQ(Document()["osds"][0]["answers"], false);
}

}  // namespace
}  // namespace weir::monitor
