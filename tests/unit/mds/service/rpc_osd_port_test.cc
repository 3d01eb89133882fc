#include "mds/service/rpc_osd_port.h"

#include <gtest/gtest.h>

#include "common/testing/sim_transport.h"
#include "common/wire/osd.pb.h"

namespace weir::mds {
namespace {

// An OSD that notes the inodes of each request; with `old`, it knows of one only.
struct Osd {
  Osd(net::Network& network, Clock& clock)
      : server(*net::RpcServer::Start(
            network, clock, "inproc://osd",
            [this](const std::shared_ptr<net::IncomingCall>& call) { Handle(*call); })) {}
  void Handle(net::IncomingCall& call) {
    wire::ObjectRequest request;
    ASSERT_TRUE(request.ParseFromString(call.body()));
    last = request;
    requests.push_back({request.inode()});
    for (const uint64_t inode : request.more_inodes()) requests.back().push_back(inode);
    wire::ObjectReply reply;
    reply.set_next_index(request.inode() * 10);
    for (const uint64_t inode : requests.back()) {
      if (!old) reply.add_next_indexes(inode * 10);
    }
    call.Respond(failure.ok() ? Status::Ok() : failure, reply.SerializeAsString(), {});
  }
  std::vector<std::vector<uint64_t>> requests;
  wire::ObjectRequest last;
  bool old = false;
  Status failure;
  std::unique_ptr<net::RpcServer> server;
};

using Requests = std::vector<std::vector<uint64_t>>;

class PurgesTest : public ::testing::Test {
 protected:
  PurgesTest() {
    OsdEntry& entry = map_.osds[OsdId(3)];
    entry.id = OsdId(3);
    entry.endpoint = "inproc://osd";
    entry.up = true;
  }
  ~PurgesTest() override { port_.Stop(); }
  void Purge(uint64_t inode) {
    const ObjectOrder order{
        ObjectOrder::Kind::kDeleteInode, OsdId(3), InodeId(inode), 0, 1, 0, kSystemPurge, {}};
    port_.Send(map_, order, [this, inode](const OrderEnd& end) {
      ends_[inode] = end.status.ok() ? static_cast<int>(end.next_index) : -1;
    });
  }
  testing::ManualClock clock_;
  testing::SimNetwork network_{clock_, 1};
  ClusterMap map_;
  Osd osd_{network_, clock_};
  RpcOsdPort port_{network_, clock_};
  std::map<uint64_t, int> ends_;
};

TEST_F(PurgesTest, ShareARequestAtTheNextTick) {
  for (uint64_t inode = 1; inode <= 4; ++inode) Purge(inode);
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_TRUE(osd_.requests.empty());
  port_.Tick();
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(osd_.requests, (Requests{{1, 2, 3, 4}}));
  EXPECT_EQ(ends_, (std::map<uint64_t, int>{{1, 10}, {2, 20}, {3, 30}, {4, 40}}));
}

TEST_F(PurgesTest, EachRequestIsAnOperationAndNobodyWaitsForIt) {
  Purge(1);
  port_.Tick();
  network_.RunFor(std::chrono::seconds(1));
  const wire::OpId first = osd_.last.op();
  EXPECT_NE(first.session(), 0u);
  EXPECT_EQ(first.session_floor(), first.number());
  EXPECT_EQ(osd_.last.lane(), wire::LANE_BACKGROUND);
  EXPECT_FALSE(osd_.last.has_slot());
  Purge(1);
  Purge(2);
  port_.Tick();
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(osd_.last.op().number(), first.number() + 1) << "it deletes something else";
  EXPECT_EQ(osd_.last.op().session_floor(), first.number() + 1);
}

TEST_F(PurgesTest, AnOrderIsSentAsItIsNumbered) {
  ObjectOrder order;
  order.osd = OsdId(3);
  order.inode = InodeId(5);
  order.index = 6;
  order.pool = PoolId(2);
  order.slot = 0;
  order.chain_version = 7;
  order.op = {8, 9};
  order.floors = {4, 5};
  port_.Send(map_, order, [](const OrderEnd&) {});
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(osd_.last.pool(), 2u);
  EXPECT_TRUE(osd_.last.has_slot());
  EXPECT_EQ(osd_.last.chain_version(), 7u);
  EXPECT_EQ(osd_.last.op().session(), 8u);
  EXPECT_EQ(osd_.last.op().number(), 9u);
  EXPECT_EQ(osd_.last.op().session_floor(), 4u);
  EXPECT_EQ(osd_.last.op().object_floor(), 5u);
  EXPECT_EQ(osd_.last.lane(), wire::LANE_INTERACTIVE);
}

TEST_F(PurgesTest, GoAtOnceWhenThereAreMany) {
  for (uint64_t inode = 1; inode <= 140; ++inode) Purge(inode);
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(osd_.requests.size(), 2u);
  EXPECT_EQ(ends_.size(), 128u);
  port_.Tick();
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(ends_.size(), 140u);
}

TEST_F(PurgesTest, AnOsdThatKnowsOneInodeOnlyIsAskedForOneAtATime) {
  osd_.old = true;
  for (uint64_t inode = 1; inode <= 3; ++inode) Purge(inode);
  port_.Tick();
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(osd_.requests, (Requests{{1, 2, 3}, {2}, {3}}));
  EXPECT_EQ(ends_, (std::map<uint64_t, int>{{1, 10}, {2, 20}, {3, 30}}));
}

TEST_F(PurgesTest, AFailureIsThatOfAllInTheRequest) {
  osd_.failure = Status(ErrorCode::kIo, "broken");
  for (uint64_t inode = 1; inode <= 3; ++inode) Purge(inode);
  port_.Tick();
  network_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(ends_, (std::map<uint64_t, int>{{1, -1}, {2, -1}, {3, -1}}));
}

TEST_F(PurgesTest, StopEndsWhatWaits) {
  for (uint64_t inode = 1; inode <= 18; ++inode) Purge(inode);
  port_.Stop();
  EXPECT_EQ(ends_.size(), 18u);
  for (const auto& [inode, end] : ends_) EXPECT_EQ(end, -1);
}

// Whoever waits for an answer may go as soon as Stop has returned.
TEST(RpcOsdPortTest, StopEndsWhatIsUnderWay) {
  testing::ManualClock clock;
  testing::SimNetwork network(clock, 1);
  ClusterMap map;
  OsdEntry& osd = map.osds[OsdId(3)];
  osd.id = OsdId(3);
  osd.endpoint = "inproc://nobody-listens";
  osd.up = true;
  RpcOsdPort port(network, clock);
  ObjectOrder order;
  order.osd = OsdId(3);
  std::vector<ErrorCode> ends;
  const auto send = [&] {
    port.Send(map, order, [&](const OrderEnd& end) { ends.push_back(end.status.code()); });
  };
  send();
  network.RunFor(std::chrono::seconds(1));
  EXPECT_TRUE(ends.empty());
  port.Stop();
  EXPECT_EQ(ends, std::vector<ErrorCode>{ErrorCode::kCancelled});
  send();
  EXPECT_EQ(ends.size(), 2U);
}

}  // namespace
}  // namespace weir::mds
