#include "common/monitor/troubles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/placement/cluster_map.h"
#include "common/wire/mds.pb.h"
#include "common/wire/osd.pb.h"

namespace weir::monitor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr uint32_t kGold = 16;

class NotesTest : public ::testing::Test {
 protected:
  NotesTest() {
    wire::ClassInfo* gold = status_.mutable_map()->add_classes();
    gold->set_id(kGold);
    gold->set_name("gold");
    for (uint64_t session : {1, 2}) {
      auto* mount = status_.add_mounts();
      mount->set_client_name("web-" + std::to_string(session));
      mount->set_session(session);
    }
  }
  // What a mount had of an OSD in the last seconds.
  void Used(uint64_t session, uint32_t osd, double device_seconds) {
    wire::OsdStatsReply& stats = osds_[osd];
    wire::ClassStats* row =
        stats.classes().empty() ? stats.add_classes() : stats.mutable_classes(0);
    row->set_class_id(kGold);
    wire::FlowsOfClass* flows = row->mutable_flows();
    flows->set_window_s(8);
    flows->set_users_seen(flows->users_seen() + 1);
    wire::FlowStats* user = flows->add_users();
    user->set_session(session);
    user->set_device_us(static_cast<uint64_t>(device_seconds * 1e6));
  }
  wire::FlowsOfClass* Flows(uint32_t osd) { return osds_[osd].mutable_classes(0)->mutable_flows(); }

  wire::StatusReply status_;
  std::map<uint32_t, wire::OsdStatsReply> osds_;
};

TEST_F(NotesTest, TellsOfMountsThatMissEachOther) {
  EXPECT_THAT(NotesOf(status_, osds_), IsEmpty());
  Used(1, 0, 4);
  Used(2, 1, 4);
  EXPECT_THAT(NotesOf(status_, osds_),
              ElementsAre(StartsWith("class gold: web-1 uses only osd.0 and web-2 only osd.1: ")));
  Used(2, 0, 0.001);
  EXPECT_THAT(NotesOf(status_, osds_), IsEmpty()) << "one request tells the whole sum";
}

TEST_F(NotesTest, SaysNothingOfWhoUsesLittleOrIsGone) {
  Used(1, 0, 4);
  Used(2, 1, 0.01);
  EXPECT_THAT(NotesOf(status_, osds_), IsEmpty());
  Used(3, 1, 4);
  EXPECT_THAT(NotesOf(status_, osds_), IsEmpty()) << "no mount that the MDS knows";
}

TEST_F(NotesTest, SaysNothingWhereItDoesNotSeeAll) {
  Used(1, 0, 4);
  Used(2, 1, 4);
  Flows(1)->set_window_s(1);
  EXPECT_THAT(NotesOf(status_, osds_), IsEmpty()) << "too short a look";
  Flows(1)->set_window_s(8);
  EXPECT_EQ(NotesOf(status_, osds_).size(), 1u);
  Flows(0)->set_users_seen(33);
  EXPECT_THAT(NotesOf(status_, osds_), IsEmpty()) << "some flows are not listed";
}

TEST(NearFullNotesTest, NamesTheOsdAndWhatItMeans) {
  ClusterMap map;
  for (uint32_t i = 0; i < 2; ++i) {
    OsdEntry& osd = map.osds[OsdId(i)];
    osd.id = OsdId(i);
    osd.up = true;
    osd.capacity_bytes = 1 << 30;
    osd.used_bytes = i * (uint64_t{1000} << 20);
    osd.qos.token_rate = 1 << 20;
  }
  Pool& pool = map.pools[PoolId(0)];
  pool.osds = {OsdId(0), OsdId(1)};
  pool.chains = ComputeChains(PoolId(0), 4, 1, {{OsdId(0), 1}, {OsdId(1), 1}});
  wire::StatusReply status;
  *status.mutable_map() = ToWire(map);
  EXPECT_THAT(NotesOf(status, {}), IsEmpty()) << "the MDS has not said so";
  map.near_full = true;
  *status.mutable_map() = ToWire(map);
  EXPECT_THAT(
      NotesOf(status, {}),
      ElementsAre("osd.1 is nearly full, 24MiB of 1GiB are free: closes wait for the disks"));
}

}  // namespace
}  // namespace weir::monitor
