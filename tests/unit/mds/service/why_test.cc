// Goal: what OSDs and mounts say with their watches comes out of MDS_WHY and of `qos.why`.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

using namespace std::chrono_literals;

class WhyTest : public MdsFixture {
 protected:
  // osd.0 and a mount say that `gold` was held by its limit `seconds` long since they started.
  void SayHeld(uint32_t gold, uint64_t seconds) {
    wire::WatchRequest osd;
    osd.set_osd_id(0);
    osd.set_have_epoch(core->keeper().map()->epoch.value);
    auto* row = osd.add_osd_times();
    row->set_class_id(gold);
    row->set_ops(10 * seconds);
    row->set_limit_us(8'000'000 * seconds);
    row->set_limited_us(1'000'000 * seconds);
    row->set_active_us(1'000'000 * seconds);
    Send(wire::MDS_WATCH, osd);
    wire::WatchRequest mount;
    mount.set_kernel_path(wire::KERNEL_PATH_URING);
    mount.add_mount_times()->set_class_id(gold);
    mount.mutable_mount_times(0)->set_window_us(1000 * seconds);
    mount.mutable_mount_times(0)->set_active_us(1'000'000 * seconds);
    Send(wire::MDS_WATCH, mount);
  }
};

TEST_F(WhyTest, ReportsOfWatchesAreAnsweredAndExplained) {
  const uint32_t gold = MakeClass("gold").id();
  const uint64_t f = Touch(kRoot, "f");
  ASSERT_EQ(Tag(f, "gold"), ErrorCode::kOk);
  EXPECT_EQ(
      Get(f, "qos.why"),
      "gold (from /f); throttled 0 ms of the last 0 s; to blame: nobody (it asked for nothing)");
  wire::OpenSessionRequest open;
  open.set_client_name("host");
  Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, open);
  for (uint64_t second = 1; second <= 5; ++second) {
    SayHeld(gold, second);
    clock.Advance(1s);
  }
  EXPECT_EQ(Get(f, "qos.why"),
            "gold (from /f); throttled 4000 ms of the last 4 s; to blame: its own limit");
  EXPECT_EQ(Code(wire::MDS_SETXATTR, Xattr(f, "qos.why", "me")), ErrorCode::kPermission);
  const auto listed = Ask<wire::ListXattrReply>(wire::MDS_LISTXATTR, At(f));
  for (const std::string& name : listed.names()) EXPECT_NE(name, "qos.why");

  wire::ClassNameRequest request;
  request.set_name("gold");
  const auto why = Ask<wire::WhyReply>(wire::MDS_WHY, request);
  EXPECT_EQ(why.class_id(), gold);
  ASSERT_EQ(why.osds_size(), 1);
  EXPECT_EQ(why.osds(0).classes(0).limit_us(), 32'000'000u);
  ASSERT_EQ(why.mounts_size(), 1);
  EXPECT_EQ(why.mounts(0).client_name(), "host");
  EXPECT_EQ(why.mounts(0).path(), wire::KERNEL_PATH_URING);
  const auto status = Ask<wire::StatusReply>(wire::MDS_STATUS, wire::Empty());
  ASSERT_EQ(status.mounts_size(), 1);
  EXPECT_EQ(status.mounts(0).client_name(), "host");
  EXPECT_EQ(status.mounts(0).path(), wire::KERNEL_PATH_URING);
  EXPECT_EQ(status.mounts(0).session(), session);
  EXPECT_EQ(why.mounts(0).times().window_us(), 4000u);
  request.set_name("nothing");
  EXPECT_EQ(Code(wire::MDS_WHY, request), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::mds
