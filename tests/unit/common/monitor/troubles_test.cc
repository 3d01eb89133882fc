#include "common/monitor/troubles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weir::monitor
