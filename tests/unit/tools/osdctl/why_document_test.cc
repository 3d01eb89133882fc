#include "tools/osdctl/why_document.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

WhyAnswer Throttled(const wire::ClassInfo& info) {
  WhyAnswer answer;
  answer.info = &info;
  answer.verdict.culprit = Culprit::kLimit;
  answer.verdict.split = {.client_window = 2, .network = 0.5, .token_wait = 16, .device = 1.5};
  answer.verdict.ops_per_s = 100;
  answer.verdict.bytes_per_s = 1 << 20;
  answer.verdict.seconds = 10;
  answer.verdict.active_part = 1;
  answer.verdict.limited_part = 0.95;
  return answer;
}

TEST(WhyDocumentTest, KeepsTheKeysThatScriptsRead) {
  wire::ClassInfo info;
  info.set_name("gold");
  info.set_id(16);
  info.set_limit_bytes_per_s(1 << 20);
  WhyAnswer answer = Throttled(info);
  Json json = WhyDocument(answer);
  EXPECT_EQ(json["class"], "gold");
  EXPECT_TRUE(json["path"].is_null());
  EXPECT_EQ(json["throttled_ms"], 9500);
  EXPECT_DOUBLE_EQ(json["mean_us"]["token_wait"], 160000);
  EXPECT_DOUBLE_EQ(json["share_percent"]["client_window"], 10);
  double shares = 0;
  for (const auto& [name, share] : json["share_percent"].items()) shares += share.get<double>();
  EXPECT_DOUBLE_EQ(shares, 100);
  EXPECT_EQ(json["blame"]["culprit"], "limit");
  EXPECT_TRUE(json["blame"]["neighbour"].is_null());
  EXPECT_NE(WhyScreen(answer).find("to blame  its own limit"), std::string::npos);
  EXPECT_NE(WhyScreen(answer).find("osdctl class set gold --limit"), std::string::npos);

  answer.path = "/mnt/db/table";
  answer.reason = "gold (from /db)";
  answer.neighbour = "hog";
  answer.verdict.culprit = Culprit::kNeighbour;
  json = WhyDocument(answer);
  EXPECT_EQ(json["path"], "/mnt/db/table");
  EXPECT_EQ(json["reason"], "gold (from /db)");
  EXPECT_EQ(json["blame"]["neighbour"], "hog");
  EXPECT_NE(WhyScreen(answer).find("class     gold (from /db)"), std::string::npos);
}

TEST(WhyDocumentTest, SaysThatTheMdsPartIsMissingAndKeepsTheRest) {
  wire::ClassInfo info;
  info.set_name("gold");
  WhyAnswer answer = Throttled(info);
  EXPECT_TRUE(WhyDocument(answer)["names_missing"].is_null());
  answer.names_missing = "timed out";
  EXPECT_EQ(WhyDocument(answer)["names_missing"], "timed out");
  EXPECT_EQ(WhyDocument(answer)["blame"]["culprit"], "limit");
  EXPECT_NE(WhyScreen(answer).find("names     not known: timed out\n"), std::string::npos);
  EXPECT_NE(WhyScreen(answer).find("to blame  its own limit"), std::string::npos);
  answer.verdict.culprit = Culprit::kNobody;
  EXPECT_NE(WhyScreen(answer).find("asked for no data"), std::string::npos)
      << "of names nobody knows";
}

TEST(WhyDocumentTest, NamesTheFlowThatTakesMostWhereAClassWaitsForItself) {
  wire::ClassInfo info;
  info.set_name("gold");
  WhyAnswer answer = Throttled(info);
  EXPECT_TRUE(WaitsForItsOwn(answer.verdict));
  EXPECT_TRUE(WhyDocument(answer)["blame"]["flow"].is_null());
  wire::FlowsOfClass& flows = answer.flows.emplace();
  flows.set_window_s(5);
  flows.set_device_us(1000);
  for (const uint32_t uid : {1001U, 1002U}) {
    wire::FlowStats* user = flows.add_users();
    user->mutable_flow()->set_uid(uid);
    user->set_device_us(uid == 1001 ? 900 : 100);
  }
  EXPECT_EQ(WhyDocument(answer)["blame"]["flow"]["uid"], 1001);
  EXPECT_EQ(WhyDocument(answer)["blame"]["flow"]["share"], 0.9);
  const std::string screen = WhyScreen(answer);
  EXPECT_NE(screen.find("of its own, uid 1001 takes 90 % of its device time"), std::string::npos)
      << screen;
  EXPECT_NE(screen.find("osdctl top --flows gold"), std::string::npos) << screen;
  answer.verdict.culprit = Culprit::kNeighbour;
  EXPECT_FALSE(WaitsForItsOwn(answer.verdict));
}

// Two users of a class who have so many of its 1,000 operations on names in 5 s; one has one more
// waiting than that all wait `waited_us`.
ClassFlows AtMds(const std::string& name, uint32_t id, uint64_t device_us, uint64_t waited_us) {
  ClassFlows one{name, id, "user", {}};
  one.flows.set_window_s(5);
  one.flows.set_device_us(device_us);
  one.flows.set_requests(1000);
  one.flows.set_waiting(3);
  one.flows.set_waited_us(waited_us);
  for (const uint32_t uid : {id * 100, id * 100 + 1}) {
    wire::FlowStats* user = one.flows.add_users();
    user->mutable_flow()->set_uid(uid);
    user->set_device_us(uid == id * 100 ? device_us * 3 / 4 : device_us / 4);
    user->set_requests(500);
  }
  return one;
}

TEST(WhyDocumentTest, NamesWhoHoldsTheMdsWhereOperationsOnNamesWait) {
  wire::ClassInfo info;
  info.set_name("gold");
  info.set_id(16);
  WhyAnswer answer;
  answer.info = &info;
  EXPECT_TRUE(WhyDocument(answer)["names"].is_null());
  answer.at_mds = {AtMds("bulk", 17, 9000, 0), AtMds("gold", 16, 4000, 1'000'000)};
  // Rows are in the order of what somebody asks for: one may have less, and more that waits.
  answer.at_mds[0].flows.mutable_users()->SwapElements(0, 1);
  EXPECT_FALSE(WaitsForNames(answer)) << "0.2 of them on average are not worth a word";
  EXPECT_EQ(WhyDocument(answer)["names"]["operations_per_s"], 200);
  EXPECT_EQ(WhyDocument(answer)["names"]["waiting"], 3);
  EXPECT_TRUE(WhyDocument(answer)["names"]["flow"].is_null());
  EXPECT_NE(WhyScreen(answer).find("asked for no data"), std::string::npos);

  answer.at_mds[1] = AtMds("gold", 16, 4000, 50'000'000);
  EXPECT_TRUE(WaitsForNames(answer));
  Json names = WhyDocument(answer)["names"];
  EXPECT_EQ(names["flow"]["class"], "bulk") << "it has the most of the MDS";
  EXPECT_EQ(names["flow"]["uid"], 1700);
  EXPECT_EQ(names["flow"]["share"], 0.75);
  EXPECT_EQ(names["limited"], false);

  info.set_limit_names_per_s(200);
  names = WhyDocument(answer)["names"];
  EXPECT_EQ(names["flow"]["class"], "gold") << "its limit holds it, no neighbour";
  EXPECT_EQ(names["flow"]["uid"], 1600);
  EXPECT_EQ(names["limited"], true);
  const std::string screen = WhyScreen(answer);
  EXPECT_NE(screen.find("names     200 operations/s, 3 wait at the MDS, 49850 us each"),
            std::string::npos)
      << screen;
  EXPECT_NE(screen.find("uid 1600 has 75 % of the operations on names of gold"), std::string::npos)
      << screen;
  EXPECT_NE(screen.find("class set gold --limit-names"), std::string::npos) << screen;

  answer.verdict.split.token_wait = 11;
  EXPECT_FALSE(WaitsForNames(answer)) << "ten wait for names, eleven for data";
}

TEST(WhyDocumentTest, SaysHowTheRequestsOfEachMountCome) {
  wire::ClassInfo info;
  info.set_name("gold");
  WhyAnswer answer = Throttled(info);
  EXPECT_EQ(WhyDocument(answer)["mounts"], Json::array());
  EXPECT_EQ(WhyScreen(answer).find("PATH"), std::string::npos);
  answer.mounts = {{"a:1", 10, {}, KernelPath::kDevice},
                   {"b:2", 10, {}, KernelPath::kUring},
                   {"c:3", 10, {}, KernelPath::kUnknown}};
  const Json mounts = WhyDocument(answer)["mounts"];
  EXPECT_EQ(mounts[0], (Json{{"client", "a:1"}, {"path", "/dev/fuse"}}));
  EXPECT_EQ(mounts[1], (Json{{"client", "b:2"}, {"path", "io_uring"}}));
  EXPECT_TRUE(mounts[2]["path"].is_null());
  const std::string screen = WhyScreen(answer);
  EXPECT_NE(screen.find("MOUNT  PATH"), std::string::npos) << screen;
  EXPECT_NE(screen.find("a:1    /dev/fuse"), std::string::npos) << screen;
  EXPECT_NE(screen.find("b:2    io_uring"), std::string::npos) << screen;
  EXPECT_NE(screen.find("c:3    -"), std::string::npos) << screen;
  EXPECT_TRUE(PathJson(99).is_null()) << "of a newer version";
}

TEST(WhyDocumentTest, SaysSoWhenNothingWasAsked) {
  wire::ClassInfo info;
  info.set_name("gold");
  WhyAnswer answer;
  answer.info = &info;
  EXPECT_EQ(WhyDocument(answer)["blame"]["culprit"], "nobody");
  EXPECT_EQ(WhyDocument(answer)["mean_us"]["device"], 0);
  EXPECT_NE(WhyScreen(answer).find("asked for nothing"), std::string::npos);
}

}  // namespace
}  // namespace weir::osdctl
