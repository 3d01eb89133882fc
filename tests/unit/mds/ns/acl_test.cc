// Access control lists: what is one, what it grants, how it follows the mode. That all this agrees
// with Linux is for tests/posix to show.
#include "mds/ns/acl.h"

#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

struct Row {
  uint16_t tag;
  uint16_t permissions;
  uint32_t id = UINT32_MAX;
};

std::string Pack(std::initializer_list<Row> rows) {
  std::string bytes("\2\0\0\0", 4);
  const auto put = [&](uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  for (const Row& row : rows) {
    put(row.tag, 2);
    put(row.permissions, 2);
    put(row.id, 4);
  }
  return bytes;
}

// rw- for the owner and user 11, masked to `mask`.
std::string WithUser(uint16_t mask) {
  return Pack({{1, 6}, {2, 6, 11}, {4, 4}, {16, mask}, {32, 0}});
}

class AclTest : public MdsFixture {
 protected:
  ErrorCode Set(uint64_t inode, std::string_view name, const std::string& value) {
    return Code(wire::MDS_SETXATTR, Xattr(inode, std::string(name), value));
  }
  ErrorCode AccessAs(uint32_t user, uint64_t inode, uint32_t mask) {
    wire::AccessRequest request;
    request.mutable_caller()->set_uid(user);
    request.mutable_caller()->set_gid(user);
    request.set_inode(inode);
    request.set_mask(mask);
    return Code(wire::MDS_ACCESS, request);
  }
  uint32_t ModeOf(uint64_t inode) { return Stat(inode).attr().mode() & 07777; }
};

TEST_F(AclTest, RefusesWhatIsNoList) {
  const std::string good = WithUser(6);
  ASSERT_TRUE(Acl::Parse(good).ok());
  EXPECT_EQ(Acl::Parse(good)->value().Bytes(), good);
  EXPECT_FALSE(Acl::Parse(Pack({}))->has_value());
  for (const std::string& bad :
       {std::string(), std::string("\3\0\0\0", 4), good + "x", good.substr(0, 30),
        Pack({{1, 6}, {4, 4}}), Pack({{1, 6}, {2, 6, 11}, {4, 4}, {32, 0}}),
        Pack({{1, 8}, {4, 4}, {32, 0}}), Pack({{32, 0}, {1, 6}, {4, 4}}),
        Pack({{1, 6}, {1, 6}, {4, 4}, {32, 0}}), Pack({{1, 6}, {3, 6}, {4, 4}, {32, 0}})}) {
    EXPECT_EQ(Acl::Parse(bad).code(), ErrorCode::kInvalid);
  }
}

TEST_F(AclTest, GrantsByNameWithinTheMaskAndShowsTheMask) {
  const uint64_t f = Touch(kRoot, "f", 0600);
  EXPECT_EQ(AccessAs(11, f, 2), ErrorCode::kAccess);
  EXPECT_EQ(Set(f, kAclAccess, WithUser(6)), ErrorCode::kOk);
  EXPECT_TRUE(Stat(f).attr().has_acl());
  EXPECT_EQ(ModeOf(f), 0660u);
  EXPECT_EQ(AccessAs(11, f, 6), ErrorCode::kOk);
  EXPECT_EQ(AccessAs(12, f, 4), ErrorCode::kAccess);
  wire::SetAttrRequest chmod = Change(f);
  chmod.set_mode(0640);
  EXPECT_EQ(Code(wire::MDS_SETATTR, chmod), ErrorCode::kOk);
  EXPECT_EQ(Get(f, std::string(kAclAccess)), WithUser(4)) << "chmod moves the mask";
  EXPECT_EQ(AccessAs(11, f, 6), ErrorCode::kAccess);
  EXPECT_EQ(AccessAs(11, f, 4), ErrorCode::kOk);
}

TEST_F(AclTest, AListThatSaysNoMoreThanAModeIsOne) {
  const uint64_t f = Touch(kRoot, "f", 0600);
  EXPECT_EQ(Set(f, kAclAccess, WithUser(6)), ErrorCode::kOk);
  EXPECT_EQ(Set(f, kAclAccess, Pack({{1, 7}, {4, 5}, {32, 1}})), ErrorCode::kOk);
  EXPECT_EQ(ModeOf(f), 0751u);
  EXPECT_FALSE(Stat(f).attr().has_acl());
  EXPECT_EQ(Code(wire::MDS_GETXATTR, Xattr(f, std::string(kAclAccess))), ErrorCode::kNoData);
}

TEST_F(AclTest, ADirectoryHandsItsDefaultOnInsteadOfTheUmask) {
  const uint64_t d = Mkdir(kRoot, "d");
  const uint64_t f = Touch(kRoot, "f");
  EXPECT_EQ(Set(f, kAclDefault, WithUser(6)), ErrorCode::kAccess);
  EXPECT_EQ(Set(d, kAclDefault, WithUser(6)), ErrorCode::kOk);
  wire::CreateRequest create = New(d, "file", S_IFREG | 0666);
  create.set_umask(077);
  const uint64_t file = Ask<wire::EntryReply>(wire::MDS_MKNOD, create).attr().inode();
  EXPECT_EQ(ModeOf(file), 0660u);
  EXPECT_EQ(Get(file, std::string(kAclAccess)), WithUser(6));
  create = New(d, "sub", S_IFDIR | 0700);
  const uint64_t sub = Ask<wire::EntryReply>(wire::MDS_MKNOD, create).attr().inode();
  EXPECT_EQ(Get(sub, std::string(kAclDefault)), WithUser(6));
  EXPECT_EQ(Get(sub, std::string(kAclAccess)), WithUser(0)) << "no more than mkdir asked for";
  create = New(kRoot, "plain", S_IFREG | 0666);
  create.set_umask(027);
  EXPECT_EQ(ModeOf(Ask<wire::EntryReply>(wire::MDS_MKNOD, create).attr().inode()), 0640u);
}

TEST_F(AclTest, OnlyTheOwnerSetsOne) {
  const uint64_t f = Touch(kRoot, "f", 0666);
  uid = 10;
  EXPECT_EQ(Set(f, kAclAccess, WithUser(6)), ErrorCode::kPermission);
}

}  // namespace
}  // namespace weir::mds
