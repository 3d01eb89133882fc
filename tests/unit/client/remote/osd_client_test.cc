// Which connection a request takes, with an OSD in the same process that answers whatever it hears.
#include "client/remote/osd_client.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "common/base/crc32c.h"
#include "common/net/sub_session.h"
#include "common/reactor/reactor.h"
#include "common/wire/osd.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSession = 7;
constexpr OsdId kOsd{3};
constexpr ClassId kAnyClass{16}, kBounded{17};

class LaneNetwork final : public net::Network {
 public:
  explicit LaneNetwork(bool small_apart) : small_apart_(small_apart) {}
  Result<std::unique_ptr<net::ServerTransport>> Listen(const std::string& endpoint) override {
    return real_->Listen(endpoint);
  }
  Result<std::unique_ptr<net::ClientTransport>> Dial(const std::string& endpoint) override {
    return real_->Dial(endpoint);
  }
  [[nodiscard]] bool LargeDelaySmall(const std::string& /*endpoint*/) const override {
    return small_apart_;
  }

 private:
  const bool small_apart_;
  const std::unique_ptr<net::Network> real_ = net::MakeNetwork();
};

class OsdClientTest : public ::testing::Test {
 protected:
  void Start(bool small_apart, size_t reactors = 0) {
    network_ = std::make_unique<LaneNetwork>(small_apart);
    server_ = Serve("inproc://osd");
    for (size_t i = 0; i < reactors; ++i) {
      reactors_.push_back(*Reactor::Create({}));
      reactors_.back()->Start();
    }
    std::vector<Reactor*> all;
    for (const auto& reactor : reactors_) all.push_back(reactor.get());
    networks_ = all.empty() ? std::make_unique<ReactorNetworks>(*network_)
                            : std::make_unique<ReactorNetworks>(*network_, all);
    client_ = std::make_unique<OsdClient>(*networks_, SystemClock::Get(),
                                          OsdClient::Options{.session = kSession, .timeout = 60s});
    client_->SetMap(MapWith({}));
  }
  std::unique_ptr<net::RpcServer> Serve(const std::string& endpoint) {
    auto server =
        net::RpcServer::Start(*network_, SystemClock::Get(), endpoint,
                              [this](const std::shared_ptr<net::IncomingCall>& call) {
                                EXPECT_EQ(call->session(), kSession);  // fences know this one
                                heard_ = (call->sub_session() ^ kSession) >> net::kConnectionShift;
                                if (deaf_) {
                                  const std::lock_guard lock(mutex_);
                                  held_.push_back(call);
                                  return;
                                }
                                (void)request_.ParseFromString(call->body());
                                call->Respond(answer_, reply_.SerializeAsString(), Buffer());
                              },
                              {});
    EXPECT_TRUE(server.ok()) << server.status();
    return std::move(*server);
  }
  static ClusterMap MapWith(const std::vector<ClassId>& bounded) {
    ClusterMap map;
    map.osds[kOsd].endpoint = "inproc://osd";
    map.classes[kAnyClass];
    for (const ClassId id : bounded) map.classes[id].spec.service.bound = 5ms;
    return map;
  }
  void Send(bool write, uint64_t length, ObjectSender::Callback callback) {
    ObjectOp op;
    op.class_id = kAnyClass;
    op.write = write;
    op.length = length;
    if (write) op.payload = Buffer::AlignedZeros(length);
    client_->Send(op, {.osd = kOsd}, std::move(callback));
  }
  // The connection on which the OSD heard of it, sent on the thread of `reactor`, if any.
  uint64_t ConnectionOf(bool write, uint64_t length, int reactor = -1) {
    std::promise<void> answered;
    const auto send = [&] {
      Send(write, length, [&](const ObjectAnswer& answer) {
        EXPECT_TRUE(answer.result.ok()) << answer.result.status();
        answered.set_value();
      });
    };
    reactor < 0 ? send() : reactors_[reactor]->Post(send);
    answered.get_future().get();
    return heard_;
  }

  std::unique_ptr<LaneNetwork> network_;
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::unique_ptr<ReactorNetworks> networks_;
  std::atomic<uint64_t> heard_{0};
  std::atomic<bool> deaf_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<net::IncomingCall>> held_;
  wire::ObjectRequest request_;  // the last one
  Status answer_;
  wire::ObjectReply reply_;
  std::unique_ptr<net::RpcServer> server_;
  std::unique_ptr<OsdClient> client_;
};

TEST_F(OsdClientTest, SmallReadsDoNotQueueBehindWritesOnTheirWay) {
  Start(true);
  // A connection counts once its server has spoken; until then requests take the first one.
  while (ConnectionOf(false, 4096) == 0) std::this_thread::yield();
  EXPECT_EQ(ConnectionOf(true, 4096), 0u);
  EXPECT_EQ(ConnectionOf(false, 64 << 10), 0u);
}

TEST_F(OsdClientTest, EachReactorThatSendsGetsConnectionsOfItsOwn) {
  Start(true, 3);
  while (ConnectionOf(false, 4096) == 0) std::this_thread::yield();
  const uint64_t small_of_first = ConnectionOf(false, 4096);
  EXPECT_EQ(ConnectionOf(true, 4096, 2), 0u) << "there is no other yet";
  client_->Tick();
  while (ConnectionOf(true, 4096, 2) == 0) std::this_thread::yield();
  EXPECT_EQ(ConnectionOf(true, 4096, 2), 2u);
  while (ConnectionOf(false, 4096, 2) == 2) std::this_thread::yield();
  EXPECT_NE(ConnectionOf(false, 4096, 2), small_of_first);
  EXPECT_EQ(ConnectionOf(true, 4096, 1), 0u) << "the second has not sent before";
  EXPECT_EQ(ConnectionOf(true, 4096, 0), 0u);
  EXPECT_EQ(ConnectionOf(true, 4096), 0u) << "a thread that is no reactor's";
}

TEST_F(OsdClientTest, AnOsdThatHasMovedIsReachedByEachReactorAndNothingWaitsForTheOldOne) {
  Start(false, 2);
  while (ConnectionOf(true, 4096, 1) == 0) client_->Tick();
  deaf_ = true;
  std::promise<ErrorCode> ended;
  reactors_[1]->Post([&] {
    Send(true, 4096, [&](const ObjectAnswer& answer) { ended.set_value(answer.result.code()); });
  });
  for (bool heard = false; !heard; std::this_thread::yield()) {
    const std::lock_guard lock(mutex_);
    heard = !held_.empty();
  }
  deaf_ = false;
  const auto moved = Serve("inproc://elsewhere");
  ClusterMap map = MapWith({});
  map.osds[kOsd].endpoint = "inproc://elsewhere";
  RunInLoopAndWait(*reactors_[0], [&] { client_->SetMap(map); });
  client_->Tick();
  EXPECT_EQ(ended.get_future().get(), ErrorCode::kCancelled);
  while (ConnectionOf(true, 4096, 1) == 0) client_->Tick();
  held_.clear();
}

TEST_F(OsdClientTest, OnceStoppedNoMapConnectsAgain) {
  Start(false, 2);
  client_->Stop();
  client_->SetMap(MapWith({}));
  client_->Tick();
  EXPECT_FALSE(client_->Reachable(kOsd));
  Send(true, 4096, [](const ObjectAnswer& answer) {
    EXPECT_EQ(answer.result.code(), ErrorCode::kUnreachable);
  });
}

TEST_F(OsdClientTest, WhatAnOsdMustKnowOfAChangeStandsInTheRequest) {
  Start(false);
  ObjectOp op;
  op.write = true;
  op.class_id = kAnyClass;
  op.flow = {1001, 4711, FlowKind::kCgroup, std::make_shared<const std::string>("/a.slice")};
  op.pool = PoolId(2);
  op.object = {InodeId(5), 6};
  op.length = 4096;
  op.payload = Buffer::AlignedZeros(4096);
  ObjectSender::Stamp stamp{.osd = kOsd, .delays = {3, 4}, .slot = 8, .chain_version = 9};
  stamp.op = {kSession, 12};
  stamp.floors = {10, 11};
  answer_ = Status(ErrorCode::kStaleEpoch, "not any more");
  *reply_.mutable_newer_chain() =
      ToWire(Chain{10, {{OsdId(4), 1, replication::MemberState::kServing}}});
  std::promise<ObjectAnswer> answered;
  client_->Send(op, stamp, [&](ObjectAnswer answer) { answered.set_value(std::move(answer)); });
  const ObjectAnswer answer = answered.get_future().get();
  EXPECT_EQ(answer.result.code(), ErrorCode::kStaleEpoch);
  ASSERT_TRUE(answer.newer_chain.has_value());
  EXPECT_EQ(answer.newer_chain->version, 10u);
  EXPECT_EQ(answer.newer_chain->head(), OsdId(4));
  EXPECT_EQ(std::vector<uint64_t>(request_.delays().begin(), request_.delays().end()),
            (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(request_.flow().uid(), 1001u);
  EXPECT_EQ(request_.flow().opener(), 4711u);
  EXPECT_EQ(request_.flow().kind(), wire::Flow::CGROUP);
  EXPECT_EQ(request_.flow().cgroup(), "/a.slice");
  EXPECT_EQ(request_.lane(), wire::LANE_INTERACTIVE);
  EXPECT_EQ(request_.pool(), 2u);
  EXPECT_EQ(request_.slot(), 8u);
  EXPECT_EQ(request_.chain_version(), 9u);
  EXPECT_EQ(request_.op().session(), kSession);
  EXPECT_EQ(request_.op().number(), 12u);
  EXPECT_EQ(request_.op().session_floor(), 10u);
  EXPECT_EQ(request_.op().object_floor(), 11u);
  // A read has no number, and any other refusal no chain.
  answer_ = Status(ErrorCode::kBusy, "not now");
  op.write = false;
  stamp.op = {};
  std::promise<ObjectAnswer> read;
  client_->Send(op, stamp, [&](ObjectAnswer got) { read.set_value(std::move(got)); });
  EXPECT_FALSE(read.get_future().get().newer_chain.has_value());
  EXPECT_FALSE(request_.has_op());
}

TEST_F(OsdClientTest, TellsWhetherAClassHasALatencyBound) {
  Start(true);
  EXPECT_FALSE(client_->any_bounded());
  client_->SetMap(MapWith({kBounded}));
  EXPECT_TRUE(client_->any_bounded());
  client_->SetMap(MapWith({}));
  EXPECT_FALSE(client_->any_bounded());
}

TEST_F(OsdClientTest, WhereMessagesAreHandedOverOneConnectionIsEnough) {
  Start(false);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(ConnectionOf(false, 4096), 0u);
}

}  // namespace
}  // namespace weir::client
