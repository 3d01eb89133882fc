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
    client_ = std::make_unique<OsdClient>(*networks_, SystemClock::Get(), kSession, 60s);
    client_->SetMap(MapWith({}));
  }
  std::unique_ptr<net::RpcServer> Serve(const std::string& endpoint) {
    auto server = net::RpcServer::Start(
        *network_, SystemClock::Get(), endpoint,
        [this](const std::shared_ptr<net::IncomingCall>& call) {
          EXPECT_EQ(call->session(), kSession);  // fences know this one
          heard_ = (call->sub_session() ^ kSession) >> net::kConnectionShift;
          if (deaf_) {
            const std::lock_guard lock(mutex_);
            held_.push_back(call);
            return;
          }
          call->Respond(Status::Ok(), wire::ObjectReply().SerializeAsString(), Buffer());
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
  void Send(bool write, uint64_t length, ObjectCallback callback) {
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
      Send(write, length, [&](const Result<ObjectOutcome>& outcome) {
        EXPECT_TRUE(outcome.ok()) << outcome.status();
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
    Send(true, 4096,
         [&](const Result<ObjectOutcome>& outcome) { ended.set_value(outcome.code()); });
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
  Send(true, 4096, [](const Result<ObjectOutcome>& outcome) {
    EXPECT_EQ(outcome.code(), ErrorCode::kUnreachable);
  });
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
