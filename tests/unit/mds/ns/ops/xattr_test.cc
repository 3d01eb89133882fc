#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class XattrTest : public MdsFixture {
 protected:
  ErrorCode Set(uint64_t inode, const std::string& name, const std::string& value,
                uint32_t flags = 0) {
    wire::XattrRequest request = Xattr(inode, name, value);
    request.set_flags(flags);
    return Code(wire::MDS_SETXATTR, request);
  }
  std::vector<std::string> Names(uint64_t inode) {
    const auto reply = Ask<wire::ListXattrReply>(wire::MDS_LISTXATTR, At(inode));
    return {reply.names().begin(), reply.names().end()};
  }
};

TEST_F(XattrTest, SetsReplacesListsAndRemoves) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Set(f, "user.a", "1", 1), ErrorCode::kOk);
  EXPECT_EQ(Set(f, "user.a", "2", 1), ErrorCode::kExists);
  EXPECT_EQ(Set(f, "user.b", "2", 2), ErrorCode::kNoData);
  EXPECT_EQ(Set(f, "user.a", std::string("x\0y", 3), 2), ErrorCode::kOk);
  EXPECT_EQ(Get(f, "user.a"), std::string("x\0y", 3));
  EXPECT_EQ(Names(f), std::vector<std::string>{"user.a"});
  EXPECT_EQ(Code(wire::MDS_REMOVEXATTR, Xattr(f, "user.a")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_REMOVEXATTR, Xattr(f, "user.a")), ErrorCode::kNoData);
  EXPECT_EQ(Get(f, "user.a"), "error no such attribute");
}

TEST_F(XattrTest, HasTheLimitsAndKindsOfLinux) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Set(f, "user." + std::string(250, 'n'), "1"), ErrorCode::kOk);
  EXPECT_EQ(Set(f, "user." + std::string(251, 'n'), "1"), ErrorCode::kRange);
  EXPECT_EQ(Set(f, "user.big", std::string(64 << 10, 'v')), ErrorCode::kOk);
  EXPECT_EQ(Set(f, "user.big", std::string((64 << 10) + 1, 'v')), ErrorCode::kTooBig);
  EXPECT_EQ(Set(f, "system.other", "x"), ErrorCode::kNotSupported);
  EXPECT_EQ(Set(f, "user.", "x"), ErrorCode::kInvalid);
  EXPECT_EQ(Set(f, "trusted.x", "1"), ErrorCode::kOk);
  EXPECT_EQ(Set(f, "qos.effective_class", "1"), ErrorCode::kPermission);
  uid = 10;
  EXPECT_EQ(Set(f, "trusted.x", "1"), ErrorCode::kPermission);
  EXPECT_EQ(Get(f, "trusted.x"), "error no such attribute");
  EXPECT_EQ(Set(f, "user.a", "1"), ErrorCode::kAccess);
  EXPECT_EQ(Names(f).size(), 2u);
}

TEST_F(XattrTest, TagsNeedAClassThatTheCallerMayUse) {
  const uint64_t d = Mkdir(kRoot, "d", 0777);
  EXPECT_EQ(Tag(d, "gold"), ErrorCode::kInvalid);
  wire::SetClassRequest request;
  request.set_name("gold");
  request.add_users(10);
  request.add_groups(30);
  EXPECT_TRUE(Admin(wire::MDS_CLASS_CREATE, request).status.ok());
  uid = 11;
  gid = 11;
  EXPECT_EQ(Tag(d, "gold"), ErrorCode::kPermission);
  groups = {30};
  EXPECT_EQ(Tag(d, "gold"), ErrorCode::kOk);
  EXPECT_EQ(Tag(d, "system.purge"), ErrorCode::kPermission);
  EXPECT_EQ(Names(d), std::vector<std::string>{"user.qos.class"});
  EXPECT_EQ(Get(d, "user.qos.class"), "gold");
}

TEST_F(XattrTest, TheNearestTagWinsAndARemovedClassFallsBack) {
  MakeClass("gold");
  MakeClass("silver");
  const uint64_t a = Mkdir(kRoot, "a");
  const uint64_t b = Mkdir(a, "b");
  const uint64_t f = Touch(b, "f");
  EXPECT_EQ(Tag(a, "gold"), ErrorCode::kOk);
  EXPECT_EQ(Get(f, "qos.effective_class"), "gold (from /a)");
  const uint64_t epoch = core->names().DurableTagEpoch();
  EXPECT_EQ(Tag(b, "silver"), ErrorCode::kOk);
  EXPECT_EQ(core->names().DurableTagEpoch(), epoch + 1);
  EXPECT_EQ(Get(f, "qos.effective_class"), "silver (from /a/b)");
  EXPECT_EQ(Stat(f).effective_class().class_id(), core->keeper().ClassIdOf("silver"));
  EXPECT_EQ(Code(wire::MDS_REMOVEXATTR, Xattr(b, "user.qos.class")), ErrorCode::kOk);
  EXPECT_EQ(Get(f, "qos.effective_class"), "gold (from /a)");
  wire::ClassNameRequest gone;
  gone.set_name("gold");
  EXPECT_TRUE(Admin(wire::MDS_CLASS_REMOVE, gone).status.ok());
  EXPECT_EQ(Stat(f).effective_class().class_id(), 0u);
  EXPECT_EQ(Get(a, "user.qos.class"), "gold") << "the tag stays";
  EXPECT_EQ(Get(f, "qos.effective_class"), "best-effort (class gold of /a does not exist)");
}

TEST_F(XattrTest, AMountClassHoldsForWhatIsUntagged) {
  MakeClass("web");
  wire::OpenSessionRequest open;
  open.set_mount_class("web");
  const auto opened = Ask<wire::OpenSessionReply>(wire::MDS_OPEN_SESSION, open);
  EXPECT_EQ(opened.mount_class_id(), 16u);
  EXPECT_EQ(opened.root_inode(), kRoot);
  EXPECT_EQ(Get(Touch(kRoot, "f"), "qos.effective_class"), "web (mount default)");
}

TEST_F(XattrTest, LayoutsAreInheritedAndFixedOnceThereIsData) {
  const uint64_t d = Mkdir(kRoot, "d");
  EXPECT_EQ(Set(d, "user.weir.layout.stripe_unit", "64KiB"), ErrorCode::kOk);
  EXPECT_EQ(Set(d, "user.weir.layout.stripe_count", "2"), ErrorCode::kOk);
  EXPECT_EQ(Set(d, "user.weir.layout.stripe_unit", "3000"), ErrorCode::kInvalid);
  EXPECT_EQ(Set(d, "user.weir.layout.pool", "nope"), ErrorCode::kInvalid);
  EXPECT_EQ(Set(d, "user.weir.layout.tier", "ssd"), ErrorCode::kInvalid);  // nobody has one
  EXPECT_EQ(Names(d).size(), 4u);
  const uint64_t f = Touch(Mkdir(d, "sub"), "f");
  EXPECT_EQ(Get(f, "user.weir.layout.stripe_unit"), "65536");
  EXPECT_EQ(Get(f, "weir.layout"),
            "stripe_unit=65536 stripe_count=2 object_size=4194304 pool=default");
  EXPECT_TRUE(Names(f).empty());
  Grow(f, 10 << 20);
  EXPECT_EQ(Get(f, "weir.objects"), "0:osd.0 1:osd.0 2:osd.0 3:osd.0");
  EXPECT_EQ(Set(f, "user.weir.layout.stripe_count", "1"), ErrorCode::kInvalid);
  EXPECT_EQ(Code(wire::MDS_REMOVEXATTR, Xattr(d, "user.weir.layout.pool")), ErrorCode::kOk);
  EXPECT_EQ(Get(d, "user.weir.layout.stripe_count"), "1");
}

// What fallocate keeps without moving the size would lie where nobody looks for it any more.
TEST_F(XattrTest, ALayoutIsFixedOnceSpaceIsKept) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Set(f, "user.weir.layout.stripe_count", "2"), ErrorCode::kOk);
  wire::AllocatedRequest kept;
  kept.set_inode(f);
  kept.set_end(4096);
  kept.set_keep_size(true);
  kept.set_grown_bytes(4096);
  kept.set_beyond_bytes(4096);
  ASSERT_EQ(Stat(f).attr().size(), 0u);
  ASSERT_EQ(Code(wire::MDS_ALLOCATED, kept), ErrorCode::kOk);
  ASSERT_EQ(Stat(f).attr().size(), 0u);
  EXPECT_EQ(Set(f, "user.weir.layout.stripe_count", "1"), ErrorCode::kInvalid);
}

TEST_F(XattrTest, ATierIsOneThatAnOsdOfThePoolHas) {
  wire::RegisterOsdRequest tiered;
  tiered.set_osd_uuid("disk-t");
  tiered.set_endpoint("inproc://osd.1");
  tiered.set_capacity_bytes(uint64_t{2} << 30);
  for (const char* name : {"ssd", "hdd"}) {
    wire::TierInfo* tier = tiered.add_tiers();
    tier->set_name(name);
    tier->set_capacity_bytes(uint64_t{1} << 30);
  }
  Ask<wire::RegisterOsdReply>(wire::MDS_REGISTER_OSD, tiered);
  const uint64_t d = Mkdir(kRoot, "d");
  EXPECT_EQ(Set(d, "user.weir.layout.tier", "tape"), ErrorCode::kInvalid);
  EXPECT_EQ(Set(d, "user.weir.layout.tier", "HDD"), ErrorCode::kInvalid);
  EXPECT_EQ(Set(d, "user.weir.layout.tier", "hdd"), ErrorCode::kOk);
  EXPECT_EQ(Names(d).size(), 5u);
  const uint64_t f = Touch(d, "f");
  EXPECT_EQ(Get(f, "user.weir.layout.tier"), "hdd");
  EXPECT_EQ(Stat(f).attr().layout().tier(), "hdd");
  Grow(f, 1 << 20);
  EXPECT_EQ(Set(f, "user.weir.layout.tier", "ssd"), ErrorCode::kInvalid) << "it has data";
  EXPECT_EQ(Code(wire::MDS_REMOVEXATTR, Xattr(d, "user.weir.layout.tier")), ErrorCode::kOk);
  EXPECT_EQ(Stat(Touch(d, "g")).attr().layout().tier(), "");
}

}  // namespace
}  // namespace weir::mds
