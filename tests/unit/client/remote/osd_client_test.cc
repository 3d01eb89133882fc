// Which connection a request takes, with an OSD in the same process that answers whatever it hears.
#include "client/remote/osd_client.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "common/base/crc32c.h"
#include "common/wire/osd.pb.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSession = 7;
constexpr OsdId kOsd{3};
constexpr ClassId kAnyClass{16}, kBounded{17};

class LaneNetwork final : public net::Network {
 public:
  explicit LaneNetwork(bool lanes) : lanes_(lanes) {}
  Result<std::unique_ptr<net::ServerTransport>> Listen(const std::string& endpoint) override {
    return real_->Listen(endpoint);
  }
  Result<std::unique_ptr<net::ClientTransport>> Dial(const std::string& endpoint) override {
    return real_->Dial(endpoint);
  }
  [[nodiscard]] bool LargeDelaySmall(const std::string& /*endpoint*/) const override {
    return lanes_;
  }

 private:
  const bool lanes_;
  const std::unique_ptr<net::Network> real_ = net::MakeNetwork();
};

class OsdClientTest : public ::testing::Test {
 protected:
  void Start(bool lanes) {
    network_ = std::make_unique<LaneNetwork>(lanes);
    auto server = net::RpcServer::Start(
        *network_, SystemClock::Get(), "inproc://osd",
        [this](const std::shared_ptr<net::IncomingCall>& call) {
          heard_ = call->session();
          call->Respond(Status::Ok(), wire::ObjectReply().SerializeAsString(), Buffer());
        },
        {});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
    client_ = std::make_unique<OsdClient>(*network_, SystemClock::Get(), kSession, 60s);
    client_->SetMap(MapWith({}));
  }
  static ClusterMap MapWith(const std::vector<ClassId>& bounded) {
    ClusterMap map;
    map.osds[kOsd].endpoint = "inproc://osd";
    map.classes[kAnyClass];
    for (const ClassId id : bounded) map.classes[id].spec.service.bound = 5ms;
    return map;
  }
  // The session on which the OSD heard of it.
  uint64_t SessionOf(bool write, uint64_t length, ClassId class_id = kAnyClass) {
    ObjectOp op;
    op.class_id = class_id;
    op.write = write;
    op.length = length;
    if (write) op.payload = Buffer::AlignedZeros(length);
    std::promise<void> answered;
    client_->Send(op, {.osd = kOsd}, [&](const Result<ObjectOutcome>& outcome) {
      EXPECT_TRUE(outcome.ok()) << outcome.status();
      answered.set_value();
    });
    answered.get_future().get();
    return heard_;
  }

  std::unique_ptr<LaneNetwork> network_;
  std::atomic<uint64_t> heard_{0};
  std::unique_ptr<net::RpcServer> server_;
  std::unique_ptr<OsdClient> client_;
};

TEST_F(OsdClientTest, SmallReadsDoNotQueueBehindWritesOnTheirWay) {
  Start(true);
  // A connection counts once its server has spoken; until then requests take the first one.
  while (SessionOf(false, 4096) == kSession) std::this_thread::yield();
  EXPECT_EQ(SessionOf(true, 4096), kSession);  // fences know this one
  EXPECT_EQ(SessionOf(false, 64 << 10), kSession);
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
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(SessionOf(false, 4096), kSession);
}

}  // namespace
}  // namespace weir::client
