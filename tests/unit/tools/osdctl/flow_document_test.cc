#include "tools/osdctl/flow_document.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

// The class gold (16), on two OSDs: 1001 of the mount "web-3" with two programs, and a cgroup of a
// mount that the MDS does not know.
class FlowDocumentTest : public ::testing::Test {
 protected:
  FlowDocumentTest() {
    wire::ClassInfo* info = map_.add_classes();
    info->set_id(16);
    info->set_name("gold");
    info->set_flow("cgroup");
    for (const uint32_t osd : {0U, 1U}) {
      wire::ClassStats* row = stats_[osd].add_classes();
      row->set_class_id(16);
      wire::FlowsOfClass* flows = row->mutable_flows();
      flows->set_window_s(5);
      flows->set_device_us(500'000);
      flows->set_users_seen(2);
      flows->set_openers_seen(3);
      Fill(flows->add_users(), 1001, 0, 400'000);
      flows->mutable_users(0)->set_openers(2);
      Fill(flows->add_users(), 0, 0, 100'000);
      Fill(flows->add_openers(), 1001, 4711, 300'000);
      Fill(flows->add_openers(), 1001, 4712, 100'000);
      Fill(flows->add_openers(), 0, 0, 100'000);
    }
    wire::StatusReply status;
    status.add_mounts()->set_client_name("web-3");
    status.mutable_mounts(0)->set_session(kSession);
    mounts_ = MountNamesOf(status);
  }
  static void Fill(wire::FlowStats* row, uint32_t uid, uint64_t opener, uint64_t device_us) {
    row->mutable_flow()->set_uid(uid);
    row->mutable_flow()->set_opener(opener);
    row->set_session(kSession);
    if (uid == 0) {
      row->mutable_flow()->set_kind(wire::Flow::CGROUP);
      row->mutable_flow()->set_cgroup("/a.slice");
      row->set_session(kSession + 1);
    }
    row->set_device_us(device_us);
    row->set_requests(100);
    row->set_bytes(5 << 20);
    row->set_light_requests(opener == 4712 ? 90 : 10);
  }

  static constexpr uint64_t kSession = 0xab;
  wire::ClusterMap map_;
  StatsByOsd stats_;
  MountNames mounts_;
};

TEST_F(FlowDocumentTest, KeepsTheKeysThatScriptsRead) {
  const auto all = FlowsOf(map_, stats_, std::nullopt);
  ASSERT_EQ(all.size(), 1u);
  const Json json = FlowsDocument(all[0], mounts_);
  EXPECT_EQ(json["class"], "gold");
  EXPECT_EQ(json["id"], 16);
  EXPECT_EQ(json["flow"], "cgroup");
  EXPECT_EQ(json["window_s"], 5);
  EXPECT_EQ(json["device_us_per_s"], 200'000);
  EXPECT_EQ(json["users_seen"], 2);
  EXPECT_EQ(json["openers_seen"], 3);
  EXPECT_EQ(json["users"][0], (Json{{"uid", 1001},
                                    {"cgroup", nullptr},
                                    {"client", "web-3"},
                                    {"session", "00000000000000ab"},
                                    {"share", 0.8},
                                    {"device_us_per_s", 160'000},
                                    {"requests_per_s", 40.0},
                                    {"bytes_per_s", 2 << 20},
                                    {"light", false},
                                    {"openers", 2}}));
  EXPECT_EQ(json["users"][1]["cgroup"], "/a.slice");
  EXPECT_TRUE(json["users"][1]["uid"].is_null());
  EXPECT_TRUE(json["users"][1]["client"].is_null()) << "of a mount that is gone";
  EXPECT_EQ(json["openers"][0]["pid"], 4711);
  EXPECT_EQ(json["openers"].size(), 3u);
  EXPECT_EQ(json["openers"][1]["light"], json["openers"][1]["pid"] == 4712);
  EXPECT_TRUE(FlowsOf(map_, stats_, 17).empty());
}

TEST_F(FlowDocumentTest, TheScreenHasOpenersBelowTheirUsers) {
  const std::string screen = FlowsScreen(FlowsOf(map_, stats_, 16), mounts_);
  const size_t user = screen.find("uid 1001"), opener = screen.find("pid 4711");
  const size_t cgroup = screen.find("cgroup /a.slice"), unknown = screen.find("pid unknown");
  ASSERT_NE(unknown, std::string::npos) << screen;
  EXPECT_LT(user, opener) << screen;
  EXPECT_LT(opener, cgroup) << screen;
  EXPECT_LT(cgroup, unknown) << screen;
  EXPECT_NE(screen.find("80%"), std::string::npos) << screen;
  EXPECT_NE(screen.find("session 00000000000000ac"), std::string::npos) << screen;
  EXPECT_EQ(FlowsScreen({}, mounts_), "nobody had a request in the last seconds\n");
}

TEST_F(FlowDocumentTest, WhoAsksForNamesIsShownWithWhatWaits) {
  wire::ClassLoadReply load;
  load.add_classes()->set_class_id(17);  // nobody asked for any of it
  wire::ClassLoad* row = load.add_classes();
  row->set_class_id(16);
  wire::FlowsOfClass* flows = row->mutable_flows();
  flows->set_window_s(5);
  flows->set_device_us(1000);
  flows->set_requests(200);
  flows->set_waiting(15);
  flows->set_waited_us(2'150'000);
  flows->set_users_seen(2);
  flows->set_openers_seen(1);
  Fill(flows->add_users(), 1001, 0, 900);
  flows->mutable_users(0)->set_openers(1);
  flows->mutable_users(0)->set_waiting(14);
  flows->mutable_users(0)->set_waited_us(1'140'000);
  Fill(flows->add_users(), kUidOfMount, 0, 100);
  Fill(flows->add_openers(), 1001, 4711, 900);
  const auto all = NameFlowsOf(map_, load, std::nullopt);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(NameFlowsOf(map_, load, 17).empty());
  Json json = NameFlowsDocument(all[0], mounts_);
  EXPECT_EQ(json["users"][0], (Json{{"uid", 1001},
                                    {"cgroup", nullptr},
                                    {"client", "web-3"},
                                    {"session", "00000000000000ab"},
                                    {"share", 0.9},
                                    {"operations_per_s", 20.0},
                                    {"waiting", 14},
                                    {"wait_us", 10'000},
                                    {"light", false},
                                    {"openers", 1}}));
  EXPECT_TRUE(json["users"][1]["uid"].is_null()) << "the mount itself";
  EXPECT_EQ(json["openers"][0]["pid"], 4711);
  json.erase("users");
  json.erase("openers");
  EXPECT_EQ(json, (Json{{"class", "gold"},
                        {"id", 16},
                        {"flow", "cgroup"},
                        {"window_s", 5.0},
                        {"operations_per_s", 40.0},
                        {"waiting", 15},
                        {"wait_us", 10'000},
                        {"users_seen", 2},
                        {"openers_seen", 1}}));
  const std::string screen = NameFlowsScreen(all, mounts_, "");
  EXPECT_LT(screen.find("uid 1001"), screen.find("pid 4711")) << screen;
  EXPECT_NE(screen.find("the mount"), std::string::npos) << screen;
  EXPECT_NE(screen.find("10.0"), std::string::npos) << screen;
  EXPECT_EQ(NameHolderText(all[0].flows.users(0), all[0], mounts_),
            "uid 1001 on web-3 has 90 % of the operations on names of gold, 14 of 15 that wait");
  EXPECT_EQ(NameFlowsScreen({}, mounts_, ""), "mds: nobody asked for names in the last seconds\n");
  EXPECT_EQ(NameFlowsScreen({}, mounts_, "timed out"),
            "mds: it is not known who asks for names: timed out\n");
}

TEST_F(FlowDocumentTest, TheHeaviestIsAUserOrAProgramOfTheOnlyOne) {
  wire::FlowsOfClass flows = FlowsOf(map_, stats_, 16)[0].flows;
  EXPECT_EQ(HeaviestText(*Heaviest(flows), flows, mounts_),
            "uid 1001 on web-3 takes 80 % of its device time");
  flows.mutable_users()->RemoveLast();
  EXPECT_EQ(HeaviestText(*Heaviest(flows), flows, mounts_),
            "pid 4711 (uid 1001) on web-3 takes 60 % of its device time");
  while (flows.openers_size() > 1) flows.mutable_openers()->RemoveLast();
  EXPECT_EQ(Heaviest(flows), nullptr) << "it is all there is";
}

}  // namespace
}  // namespace weir::osdctl
