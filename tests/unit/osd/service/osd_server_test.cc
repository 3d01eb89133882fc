// A whole OsdServer over inproc sockets, with a small MDS made of an RpcServer, real threads and
// the real clock. No test waits for time to pass: each step waits for a message.
#include "osd/service/osd_server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "common/base/crc32c.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/reactor/reactor.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"
#include "tests/unit/osd/io/held_object_store.h"

namespace weir::osd {
namespace {

using namespace std::chrono_literals;

const OsdIdentity kIdentity{"5e1f-cluster", "0a-osd", 3, 0};

// Keeps what it is asked until the test takes it.
class SmallMds {
 public:
  explicit SmallMds(net::Network& network) {
    auto server = net::RpcServer::Start(network, SystemClock::Get(), "inproc://mds",
                                        [this](std::shared_ptr<net::IncomingCall> c) {
                                          std::lock_guard lock(mutex_);
                                          calls_.push_back(std::move(c));
                                          changed_.notify_all();
                                        });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
  }
  std::shared_ptr<net::IncomingCall> Next(uint32_t method) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 60s, [this] { return !calls_.empty(); })) return nullptr;
    auto call = std::move(calls_.front());
    calls_.pop_front();
    EXPECT_EQ(call->method(), method);
    return call;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<net::IncomingCall>> calls_;
  std::unique_ptr<net::RpcServer> server_;
};

class OsdServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    reactor_->Start();
    store_.immediate = true;
    OsdServer::Options options;
    options.listen = {"inproc://osd.3"};
    options.mds = "inproc://mds";
    options.loop = reactor_.get();
    auto server =
        OsdServer::Start(store_, kIdentity, *network_, SystemClock::Get(), std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
    auto client =
        net::RpcClient::Connect(*network_, SystemClock::Get(), "inproc://osd.3", {.session = 99});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = std::move(*client);
  }
  static ClusterMap Map(uint64_t epoch, uint32_t depth) {
    ClusterMap map;
    map.epoch = Epoch(epoch);
    map.cluster_uuid = kIdentity.cluster_uuid;
    OsdEntry& self = map.osds[OsdId(3)];
    self.id = OsdId(3);
    self.uuid = kIdentity.osd_uuid;
    self.qos.depth = depth;
    self.qos.guarantee = GuaranteeKind::kNone;
    ClassEntry& best_effort = map.classes[kBestEffort];
    best_effort.spec.id = kBestEffort;
    best_effort.spec.name = "best-effort";
    return map;
  }
  void Register(const ClusterMap& map) {
    const auto call = mds_.Next(wire::MDS_REGISTER_OSD);
    ASSERT_NE(call, nullptr);
    wire::RegisterOsdReply reply;
    reply.set_osd_id(3);
    reply.set_cluster_uuid(kIdentity.cluster_uuid);
    *reply.mutable_map() = ToWire(map);
    call->Respond(reply.SerializeAsString());
    ASSERT_TRUE(server_->WaitRegistered().ok());
  }
  static wire::ObjectRequest Request(uint64_t inode) {
    wire::ObjectRequest request;
    request.set_inode(inode);
    request.set_cluster(Map(1, 1).ClusterHash());
    return request;
  }

  std::unique_ptr<net::Network> network_ = net::MakeNetwork();
  SmallMds mds_{*network_};
  testing::HeldObjectStore store_;
  std::unique_ptr<Reactor> reactor_ = *Reactor::Create({});
  std::unique_ptr<OsdServer> server_;
  std::unique_ptr<net::RpcClient> client_;
};

TEST_F(OsdServerTest, ServesReadsAtOnceAndWritesWhenItKnowsWhoMay) {
  const Buffer data = Buffer::CopyOf("over the wire");
  wire::ObjectRequest request = Request(7);
  request.set_length(data.size());
  request.set_payload_crc(Crc32c(data.data(), data.size()));
  const auto write = [&] {
    return client_->CallAndWait(wire::OSD_WRITE, request.SerializeAsString(), data, {}).status();
  };
  wire::ObjectRequest whole = Request(7);
  whole.set_length(4096);
  const auto read = [&] {
    return client_->CallAndWait(wire::OSD_READ, whole.SerializeAsString(), {},
                                {.idempotent = true});
  };
  EXPECT_EQ(write().code(), ErrorCode::kBusy);
  EXPECT_TRUE(read().ok());
  ClusterMap map = Map(5, 4);
  map.fences[99] = Epoch(5);
  Register(map);
  EXPECT_EQ(write().code(), ErrorCode::kStale) << "fenced while this OSD was away";
  for (uint32_t i = 1; i < net::kMostConnections; ++i) {
    const auto another = net::RpcClient::Connect(*network_, SystemClock::Get(), "inproc://osd.3",
                                                 {.session = net::OnConnection(99, i)});
    ASSERT_TRUE(another.ok()) << another.status();
    const auto refused =
        (*another)->CallAndWait(wire::OSD_WRITE, request.SerializeAsString(), data, {});
    EXPECT_EQ(refused.code(), ErrorCode::kStale) << "by another connection of that session";
  }
  request.set_epoch(5);
  ASSERT_TRUE(write().ok());
  const auto written = read();
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->payload.view(), "over the wire");
  EXPECT_EQ(server_->epoch(), Epoch(5));
}

TEST_F(OsdServerTest, ANewMapIsObeyedBeforeTheNextWatchSaysSo) {
  Register(Map(5, 1));
  store_.immediate = false;
  for (int i = 0; i < 8; ++i) {
    wire::ObjectRequest request = Request(7);
    request.set_length(4096);
    client_->Call(wire::OSD_READ, request.SerializeAsString(), {}, {.idempotent = true},
                  [](const Result<net::Reply>&) {});
  }
  auto watch = mds_.Next(wire::MDS_WATCH);
  ASSERT_NE(watch, nullptr);
  // An answered request behind the reads: they have all arrived, and one is on the device.
  ASSERT_TRUE(client_->CallAndWait(wire::OSD_STATS, "", {}, {}).ok());
  EXPECT_EQ(store_.held(), 1u);
  wire::WatchReply reply;
  *reply.mutable_map() = ToWire(Map(6, 5));
  watch->Respond(reply.SerializeAsString());
  watch = mds_.Next(wire::MDS_WATCH);
  ASSERT_NE(watch, nullptr);
  wire::WatchRequest said;
  ASSERT_TRUE(said.ParseFromString(watch->body()));
  EXPECT_EQ(said.have_epoch(), 6u);
  EXPECT_EQ(store_.held(), 5u) << "depth 5 holds by now";
  RunInLoopAndWait(*reactor_, [this] { store_.ReleaseAll(); });
}

TEST_F(OsdServerTest, StopsWhileTheMdsIsSilent) {
  server_->Stop();
  EXPECT_EQ(server_->WaitRegistered().code(), ErrorCode::kCancelled);
  server_->Stop();
}

TEST_F(OsdServerTest, AnEndpointInUseIsAnErrorOfStart) {
  OsdServer::Options options;
  options.listen = {"inproc://osd.3"};
  options.mds = "inproc://mds";
  EXPECT_FALSE(
      OsdServer::Start(store_, kIdentity, *network_, SystemClock::Get(), std::move(options)).ok());
}

}  // namespace
}  // namespace weir::osd
