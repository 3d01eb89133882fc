#include "mds/service/rpc_osd_port.h"

#include <gtest/gtest.h>

#include "common/testing/sim_transport.h"

namespace weir::mds {
namespace {

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
