// Who may do what: mode bits, sticky directories, set-id rules, ownership.
#include "mds/format/ns_values.pb.h"
#include "mds/ns/credentials.h"
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class PermissionTest : public MdsFixture {
 protected:
  void Be(uint32_t user, uint32_t group, std::vector<uint32_t> more = {}) {
    uid = user;
    gid = group;
    groups = std::move(more);
  }
  ErrorCode Access(uint64_t inode, uint32_t mask) {
    wire::AccessRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    request.set_mask(mask);
    return Code(wire::MDS_ACCESS, request);
  }
  ErrorCode Chmod(uint64_t inode, uint32_t mode) {
    wire::SetAttrRequest request = Change(inode);
    request.set_mode(mode);
    return Code(wire::MDS_SETATTR, request);
  }
  ErrorCode Chown(uint64_t inode, uint32_t user, uint32_t group) {
    wire::SetAttrRequest request = Change(inode);
    request.set_uid(user);
    request.set_gid(group);
    return Code(wire::MDS_SETATTR, request);
  }
  uint32_t ModeOf(uint64_t inode) { return Stat(inode).attr().mode() & 07777; }
};

TEST_F(PermissionTest, FollowsTheTableOfOwnerGroupOther) {
  struct Row {
    uint32_t mode, user, group, mask;
    ErrorCode want;
  };
  const Row rows[] = {
      {0400, 10, 20, 4, ErrorCode::kOk},     {0400, 10, 20, 2, ErrorCode::kAccess},
      {0040, 10, 20, 4, ErrorCode::kAccess}, {0040, 11, 20, 4, ErrorCode::kOk},
      {0040, 11, 21, 4, ErrorCode::kAccess}, {0004, 11, 20, 4, ErrorCode::kAccess},
      {0004, 11, 21, 4, ErrorCode::kOk},     {0007, 11, 21, 7, ErrorCode::kOk},
      {0000, 0, 0, 6, ErrorCode::kOk},       {0000, 0, 0, 1, ErrorCode::kAccess},
      {0010, 0, 0, 1, ErrorCode::kOk},
  };
  const uint64_t file = Touch(kRoot, "f");
  EXPECT_EQ(Chown(file, 10, 20), ErrorCode::kOk);
  for (const Row& row : rows) {
    Be(0, 0);
    EXPECT_EQ(Chmod(file, row.mode), ErrorCode::kOk);
    Be(row.user, row.group);
    EXPECT_EQ(Access(file, row.mask), row.want)
        << std::oct << row.mode << " uid " << row.user << " mask " << row.mask;
  }
}

TEST_F(PermissionTest, SupplementaryGroupsCount) {
  const uint64_t file = Touch(kRoot, "f", 0040);
  EXPECT_EQ(Chown(file, 10, 20), ErrorCode::kOk);
  Be(11, 30, {19, 20});
  EXPECT_EQ(Access(file, 4), ErrorCode::kOk);
}

TEST_F(PermissionTest, ADirectoryNeedsSearchToLookAndWriteToChange) {
  const uint64_t d = Mkdir(kRoot, "d", 0700);
  Touch(d, "f");
  Be(10, 10);
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(d, "f")), ErrorCode::kAccess);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(d, "f")), ErrorCode::kAccess);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "mine", S_IFREG | 0644)), ErrorCode::kAccess);
  Be(0, 0);
  EXPECT_EQ(Chmod(d, 0711), ErrorCode::kOk);
  Be(10, 10);
  EXPECT_EQ(Code(wire::MDS_LOOKUP, Name(d, "f")), ErrorCode::kOk);
  wire::ReaddirRequest list;
  *list.mutable_caller() = Caller();
  list.set_inode(d);
  EXPECT_EQ(Code(wire::MDS_READDIR, list), ErrorCode::kAccess);
}

TEST_F(PermissionTest, StickyDirectoriesProtectWhatOthersOwn) {
  const uint64_t tmp = Mkdir(kRoot, "tmp", 01777);
  Be(10, 10);
  Touch(tmp, "ten");
  Be(11, 11);
  Touch(tmp, "eleven");
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(tmp, "ten")), ErrorCode::kPermission);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(tmp, "ten", tmp, "x")), ErrorCode::kPermission);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(tmp, "eleven", tmp, "ten")), ErrorCode::kPermission);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(tmp, "eleven")), ErrorCode::kOk);
}

TEST_F(PermissionTest, OnlyOwnersChangeModesAndOnlyRootGivesAway) {
  const uint64_t d = Mkdir(kRoot, "d", 0777);
  Be(10, 20, {21});
  const uint64_t f = Touch(d, "f", 0755);
  EXPECT_EQ(Chmod(f, 06755), ErrorCode::kOk);
  EXPECT_EQ(Chown(f, 11, 20), ErrorCode::kPermission);
  EXPECT_EQ(Chown(f, 10, 22), ErrorCode::kPermission);
  EXPECT_EQ(ModeOf(f), 06755u);
  EXPECT_EQ(Chown(f, 10, 21), ErrorCode::kOk);
  EXPECT_EQ(ModeOf(f), 0755u) << "a change of owner clears set-id bits";
  Be(11, 20);
  EXPECT_EQ(Chmod(f, 0777), ErrorCode::kPermission);
  Be(10, 20);
  EXPECT_EQ(Chmod(f, 02755), ErrorCode::kOk);
  EXPECT_EQ(ModeOf(f), 0755u) << "not of group 21 any more";
}

TEST_F(PermissionTest, WhoMayWriteMayLetSetIdBitsFallAndNothingElse) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Chmod(f, 06666), ErrorCode::kOk);
  Be(10, 10);
  EXPECT_EQ(Chmod(f, 0644), ErrorCode::kPermission);
  EXPECT_EQ(Chmod(f, 02666), ErrorCode::kOk);
  EXPECT_EQ(ModeOf(f) & 04000, 0u);
  EXPECT_EQ(Chmod(f, 04666), ErrorCode::kPermission);
  Be(0, 0);
  EXPECT_EQ(Chmod(f, 06664), ErrorCode::kOk);
  Be(10, 10);
  EXPECT_EQ(Chmod(f, 0664), ErrorCode::kPermission) << "may not write";
}

TEST_F(PermissionTest, SetGidDirectoriesHandOnTheirGroup) {
  const uint64_t d = Mkdir(kRoot, "d", 02777);
  EXPECT_EQ(Chown(d, 0, 50), ErrorCode::kOk);
  EXPECT_EQ(Chmod(d, 02777), ErrorCode::kOk);
  Be(10, 10);
  const uint64_t f = Touch(d, "f", 02755);
  EXPECT_EQ(Stat(f).attr().gid(), 50u);
  EXPECT_EQ(ModeOf(f), 0755u) << "no set-gid for a group that the caller is not in";
  const uint64_t sub = Mkdir(d, "sub", 0755);
  EXPECT_EQ(Stat(sub).attr().gid(), 50u);
  EXPECT_EQ(ModeOf(sub), 02755u);
}

TEST_F(PermissionTest, TimesAndDevicesAndOpens) {
  const uint64_t d = Mkdir(kRoot, "d", 0777);
  const uint64_t f = Touch(d, "f", 0666);
  Be(10, 10);
  wire::SetAttrRequest exact = Change(f);
  exact.set_mtime_ns(5);
  EXPECT_EQ(Code(wire::MDS_SETATTR, exact), ErrorCode::kPermission);
  exact.set_times_checked(true);
  EXPECT_EQ(Code(wire::MDS_SETATTR, exact), ErrorCode::kOk);
  wire::SetAttrRequest now = Change(f);
  now.set_mtime_now(true);
  EXPECT_EQ(Code(wire::MDS_SETATTR, now), ErrorCode::kOk);
  wire::CreateRequest device = New(d, "device", S_IFCHR | 0666);
  device.set_rdev(0x103);
  EXPECT_EQ(Code(wire::MDS_MKNOD, device), ErrorCode::kPermission);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(d, "block", S_IFBLK | 0666)), ErrorCode::kPermission);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(d, "whiteout", S_IFCHR | 0666)), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(d, "pipe", S_IFIFO | 0666)), ErrorCode::kOk);
  Be(0, 0);
  EXPECT_EQ(Chmod(f, 0400), ErrorCode::kOk);
  Be(10, 10);
  wire::OpenRequest open;
  *open.mutable_caller() = Caller();
  open.set_inode(f);
  EXPECT_EQ(Code(wire::MDS_OPEN, open), ErrorCode::kAccess);
  open.set_inode(d);
  open.set_flags(2);
  EXPECT_EQ(Code(wire::MDS_OPEN, open), ErrorCode::kIsDirectory);
}

uint64_t Bit(Capability capability) {
  return uint64_t{1} << static_cast<uint8_t>(capability);
}

TEST_F(PermissionTest, CapabilitiesDoWhatRootMayAndNoMore) {
  struct Row {
    Capability capability;
    uint32_t mode, mask;
    ErrorCode want;
  };
  const Row rows[] = {
      {Capability::kDacReadSearch, S_IFREG, 4, ErrorCode::kOk},
      {Capability::kDacReadSearch, S_IFREG, 6, ErrorCode::kAccess},
      {Capability::kDacReadSearch, S_IFREG | 0100, 1, ErrorCode::kAccess},
      {Capability::kDacReadSearch, S_IFDIR, 5, ErrorCode::kOk},
      {Capability::kDacReadSearch, S_IFDIR, 3, ErrorCode::kAccess},
      {Capability::kDacOverride, S_IFREG, 6, ErrorCode::kOk},
      {Capability::kDacOverride, S_IFREG, 1, ErrorCode::kAccess},
      {Capability::kDacOverride, S_IFREG | 0100, 1, ErrorCode::kOk},
      {Capability::kDacOverride, S_IFDIR, 7, ErrorCode::kOk},
      {Capability::kFowner, S_IFREG, 4, ErrorCode::kAccess},
  };
  for (const Row& row : rows) {
    InodeRecord inode;
    inode.set_uid(10);
    inode.set_gid(20);
    inode.set_mode(row.mode);
    Credentials who{.uid = 11, .gid = 21, .capabilities = Bit(row.capability)};
    EXPECT_EQ(CheckAccess(who, inode, row.mask).code(), row.want)
        << std::oct << row.mode << " mask " << row.mask;
    who.uids = {{11, 5}};
    who.gids = {{20, 5}};
    EXPECT_EQ(CheckAccess(who, inode, row.mask).code(), ErrorCode::kAccess)
        << "the owner is not of his user namespace";
    who.uids = {{10, 5}};
    EXPECT_EQ(CheckAccess(who, inode, row.mask).code(), row.want);
  }
}

TEST_F(PermissionTest, WhoCouldNotBeSeenIsTakenForNobodyWithoutGroups) {
  const uint64_t f = Touch(kRoot, "f", 0640);
  EXPECT_EQ(Chown(f, 10, 20), ErrorCode::kOk);
  Be(11, 30);
  wire::AccessRequest request;
  *request.mutable_caller() = Caller();
  request.set_inode(f);
  request.set_mask(4);
  EXPECT_EQ(Code(wire::MDS_ACCESS, request), ErrorCode::kAccess);
  request.mutable_caller()->set_unknown(true);
  EXPECT_EQ(Code(wire::MDS_ACCESS, request), ErrorCode::kOk);
  Credentials who{.uid = 11, .gid = 30, .unknown = true};
  EXPECT_FALSE(who.InGroup(20)) << "rights to classes are not the kernel's";
}

TEST_F(PermissionTest, RootOfAUserNamespaceGivesAwayWithinIt) {
  const uint64_t f = Touch(kRoot, "f", 0644);
  EXPECT_EQ(Chown(f, 100000, 100000), ErrorCode::kOk);
  Be(100000, 100000);
  const auto chown = [&](uint32_t user, uint32_t group) {
    wire::SetAttrRequest request = Change(f);
    request.mutable_caller()->set_capabilities(Bit(Capability::kChown));
    for (auto* range :
         {request.mutable_caller()->add_uids(), request.mutable_caller()->add_gids()}) {
      range->set_first(100000);
      range->set_count(65536);
    }
    request.set_uid(user);
    request.set_gid(group);
    return Code(wire::MDS_SETATTR, request);
  };
  EXPECT_EQ(chown(0, 0), ErrorCode::kPermission);
  EXPECT_EQ(chown(101000, 165536), ErrorCode::kPermission);
  EXPECT_EQ(chown(101000, 101000), ErrorCode::kOk);
  EXPECT_EQ(chown(100000, 100000), ErrorCode::kOk) << "it is still of the namespace";
}

TEST_F(PermissionTest, AFileCapabilityGoesWithDataAndOwnerInAnybodysName) {
  const auto has_one = [this](uint64_t inode) {
    wire::XattrRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    request.set_name("security.capability");
    return Code(wire::MDS_GETXATTR, request) == ErrorCode::kOk;
  };
  const auto give = [&](uint64_t inode) {
    Be(0, 0);
    wire::XattrRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    request.set_name("security.capability");
    request.set_value("some");
    EXPECT_EQ(Code(wire::MDS_SETXATTR, request), ErrorCode::kOk);
    EXPECT_TRUE(has_one(inode));
    EXPECT_TRUE(Stat(inode).attr().may_have_capability());
  };
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Chmod(f, 06777), ErrorCode::kOk);
  EXPECT_FALSE(Stat(f).attr().may_have_capability());
  give(f);
  Be(10, 10);
  wire::SetAttrRequest before_a_write = Change(f);
  before_a_write.set_kill_suid(true);
  before_a_write.set_kill_capability(true);
  EXPECT_EQ(Code(wire::MDS_SETATTR, before_a_write), ErrorCode::kOk);
  EXPECT_FALSE(has_one(f));
  EXPECT_EQ(ModeOf(f), 0777u);
  give(f);
  Be(10, 10);
  wire::SetAttrRequest cut = Change(f);
  cut.set_size(0);
  EXPECT_EQ(Code(wire::MDS_SETATTR, cut), ErrorCode::kOk);
  EXPECT_FALSE(has_one(f));
  give(f);
  wire::WroteRequest wrote;
  wrote.set_inode(f);
  wrote.set_size_at_least(5);
  EXPECT_EQ(Code(wire::MDS_WROTE, wrote), ErrorCode::kOk);
  EXPECT_TRUE(has_one(f)) << "the kernel's own write-back";
  wrote.set_kill_capability(true);
  EXPECT_EQ(Code(wire::MDS_WROTE, wrote), ErrorCode::kOk);
  EXPECT_FALSE(has_one(f));
  give(f);
  EXPECT_EQ(Chown(f, 10, 10), ErrorCode::kOk);
  EXPECT_FALSE(has_one(f));
}

TEST_F(PermissionTest, ChownOfNothingTakesSetIdsFromWhoOwns) {
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Chown(f, 10, 20), ErrorCode::kOk);
  EXPECT_EQ(Chmod(f, 06777), ErrorCode::kOk);
  Be(11, 20);
  wire::SetAttrRequest nothing = Change(f);
  nothing.set_same_owner(true);
  EXPECT_EQ(Code(wire::MDS_SETATTR, nothing), ErrorCode::kPermission);
  Be(10, 20);
  nothing = Change(f);
  nothing.set_same_owner(true);
  EXPECT_EQ(Code(wire::MDS_SETATTR, nothing), ErrorCode::kOk);
  EXPECT_EQ(ModeOf(f), 0777u);
}

}  // namespace
}  // namespace weir::mds
