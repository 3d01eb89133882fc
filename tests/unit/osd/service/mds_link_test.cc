// MdsLink against a scripted MDS: the test sees each call and answers it by hand.
#include "osd/service/mds_link.h"

#include <gtest/gtest.h>

#include <deque>

#include "common/testing/manual_clock.h"
#include "common/testing/manual_loop.h"
#include "common/wire/mds.pb.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScriptedMds final : public net::RpcClient {
 public:
  struct Asked {
    uint32_t method;
    std::string body;
    Callback callback;
  };
  explicit ScriptedMds(std::deque<Asked>* asked) : asked_(asked) {}
  void Call(uint32_t method, std::string body, Buffer, const net::CallOptions&,
            Callback callback) override {
    asked_->push_back({method, std::move(body), std::move(callback)});
  }
  [[nodiscard]] bool connected() const override { return true; }

 private:
  std::deque<Asked>* asked_;
};

const OsdIdentity kIdentity{.cluster_uuid = "5e1f-cluster",
                            .osd_uuid = "0a-osd",
                            .osd_id = 3,
                            .token_rate = 77 << 20,
                            .life = 6};

class MdsLinkTest : public ::testing::Test {
 protected:
  MdsLinkTest() {
    MdsLink::Hooks hooks;
    hooks.apply = [this](const ClusterMap& map) { applied_.push_back(map.epoch.value); };
    hooks.store_stats = [] { return StoreStats{.capacity_bytes = 1000, .used_bytes = 5}; };
    hooks.report = [this](const std::string& line) { reports_.push_back(line); };
    hooks.registered = [this](const Status& status) { told_.push_back(status.code()); };
    link_ = std::make_unique<MdsLink>(
        clock_, loop_, MdsLink::Options{.identity = kIdentity, .endpoint = "tcp://127.0.0.1:9"},
        std::move(hooks), std::make_unique<ScriptedMds>(&asked_));
    link_->Start();
  }
  static wire::ClusterMap Map(uint64_t epoch) {
    wire::ClusterMap map;
    map.set_epoch(epoch);
    map.set_cluster_uuid(kIdentity.cluster_uuid);
    return map;
  }
  template <typename Request>
  Request Take(uint32_t method) {
    Request request;
    EXPECT_EQ(asked_.size(), 1u);
    EXPECT_EQ(asked_.front().method, method);
    EXPECT_TRUE(request.ParseFromString(asked_.front().body));
    return request;
  }
  void Answer(Result<net::Reply> reply) {
    ASSERT_FALSE(asked_.empty());
    const auto callback = std::move(asked_.front().callback);
    asked_.pop_front();
    callback(std::move(reply));
  }
  void Answer(const google::protobuf::MessageLite& body) {
    Answer(net::Reply{body.SerializeAsString(), {}});
  }
  void AnswerRegistered(uint64_t epoch) {
    wire::RegisterOsdReply reply;
    reply.set_osd_id(3);
    reply.set_cluster_uuid(kIdentity.cluster_uuid);
    *reply.mutable_map() = Map(epoch);
    Answer(reply);
  }

  weir::testing::ManualClock clock_;
  weir::testing::ManualLoop loop_{clock_};
  std::deque<ScriptedMds::Asked> asked_;
  std::vector<uint64_t> applied_;
  std::vector<std::string> reports_;
  std::vector<ErrorCode> told_;
  std::unique_ptr<MdsLink> link_;
};

TEST_F(MdsLinkTest, RegistersObeysTheMapAndSaysSoInTheNextWatchAtOnce) {
  const auto request = Take<wire::RegisterOsdRequest>(wire::MDS_REGISTER_OSD);
  EXPECT_EQ(request.osd_id(), 3u);
  EXPECT_EQ(request.cluster_uuid(), kIdentity.cluster_uuid);
  EXPECT_EQ(request.endpoint(), "tcp://127.0.0.1:9");
  EXPECT_EQ(request.capacity_bytes(), 1000u);
  EXPECT_EQ(request.token_rate(), 77u << 20);
  EXPECT_EQ(request.life(), 6u);
  EXPECT_FALSE(link_->registered());
  AnswerRegistered(5);
  EXPECT_TRUE(link_->WaitRegistered().ok());
  EXPECT_THAT(told_, ElementsAre(ErrorCode::kOk));
  auto watch = Take<wire::WatchRequest>(wire::MDS_WATCH);
  EXPECT_EQ(watch.have_epoch(), 5u);
  EXPECT_EQ(watch.osd_id(), 3u);
  EXPECT_EQ(watch.used_bytes(), 5u);
  EXPECT_EQ(watch.wait_ms(), 1000u);

  wire::WatchReply newer;
  *newer.mutable_map() = Map(6);
  newer.set_epoch(6);
  newer.set_tag_epoch(9);
  Answer(newer);
  watch = Take<wire::WatchRequest>(wire::MDS_WATCH);
  EXPECT_EQ(watch.have_epoch(), 6u);
  EXPECT_EQ(watch.have_tag_epoch(), 9u);
  EXPECT_THAT(applied_, ElementsAre(5, 6));

  wire::WatchReply nothing_new;
  nothing_new.set_epoch(6);
  nothing_new.set_tag_epoch(9);
  Answer(nothing_new);
  EXPECT_EQ(Take<wire::WatchRequest>(wire::MDS_WATCH).have_epoch(), 6u);
  EXPECT_THAT(applied_, ElementsAre(5, 6));
}

TEST_F(MdsLinkTest, RegistersAgainWhenTheMdsHasForgottenIt) {
  AnswerRegistered(5);
  wire::WatchReply forgotten;
  forgotten.set_unknown_session(true);
  Answer(forgotten);
  Take<wire::RegisterOsdRequest>(wire::MDS_REGISTER_OSD);
  AnswerRegistered(6);
  EXPECT_EQ(Take<wire::WatchRequest>(wire::MDS_WATCH).have_epoch(), 6u);
  EXPECT_THAT(told_, ElementsAre(ErrorCode::kOk)) << "told once only";
}

TEST_F(MdsLinkTest, TriesAgainAfterAPauseAndReportsTheSameTroubleOnce) {
  for (int i = 0; i < 3; ++i) {
    Answer(Status(ErrorCode::kTimedOut, "mds at tcp://x: no answer"));
    EXPECT_TRUE(asked_.empty()) << "no hot loop";
    EXPECT_EQ(loop_.NextTimer(), clock_.Now() + 200ms);
    clock_.Set(loop_.NextTimer());
    loop_.RunDue();
    Take<wire::RegisterOsdRequest>(wire::MDS_REGISTER_OSD);
  }
  EXPECT_EQ(reports_.size(), 1u);
  EXPECT_THAT(reports_.front(), HasSubstr("no answer"));
  AnswerRegistered(5);
  Answer(Status(ErrorCode::kUnreachable, "gone"));
  clock_.Advance(1s);
  loop_.RunDue();
  EXPECT_EQ(Take<wire::WatchRequest>(wire::MDS_WATCH).have_epoch(), 5u);
  EXPECT_EQ(reports_.size(), 2u);
}

TEST_F(MdsLinkTest, ARefusalIsFinalAndSaysWhy) {
  Answer(Status(ErrorCode::kNotFound, "this cluster does not know OSD 0a-osd"));
  EXPECT_EQ(link_->WaitRegistered().code(), ErrorCode::kNotFound);
  EXPECT_THAT(told_, ElementsAre(ErrorCode::kNotFound));
  clock_.Advance(1h);
  loop_.RunDue();
  EXPECT_TRUE(asked_.empty());
}

TEST_F(MdsLinkTest, AnMdsOfAnotherClusterIsRefusedByTheOsdToo) {
  wire::RegisterOsdReply reply;
  reply.set_osd_id(3);
  reply.set_cluster_uuid("another");
  Answer(reply);
  const Status status = link_->WaitRegistered();
  EXPECT_EQ(status.code(), ErrorCode::kWrongCluster);
  EXPECT_THAT(status.message(), HasSubstr("5e1f-cluster"));
  EXPECT_THAT(status.message(), HasSubstr("another"));
}

TEST_F(MdsLinkTest, AMapThatCannotBeReadIsNotReportedAsObeyed) {
  AnswerRegistered(5);
  wire::WatchReply bad;
  *bad.mutable_map() = Map(6);
  bad.mutable_map()->add_osds()->mutable_qos()->set_gate("no such gate");
  Answer(bad);
  EXPECT_THAT(applied_, ElementsAre(5));
  clock_.Advance(1s);
  loop_.RunDue();
  EXPECT_EQ(Take<wire::WatchRequest>(wire::MDS_WATCH).have_epoch(), 5u);
}

TEST_F(MdsLinkTest, StopEndsAWaitForRegistration) {
  link_->Stop();
  EXPECT_EQ(link_->WaitRegistered().code(), ErrorCode::kCancelled);
  Answer(Status(ErrorCode::kCancelled, "the connection closes"));
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace weir::osd
