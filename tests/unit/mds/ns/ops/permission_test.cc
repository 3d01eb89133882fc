// Who may do what: mode bits, sticky directories, set-id rules, ownership.
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

}  // namespace
}  // namespace weir::mds
