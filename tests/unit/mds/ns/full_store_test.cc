// Goal: a metadata store that is nearly full refuses what adds, and nothing else.
#include "tests/unit/mds/mds_fixture.h"

namespace weir::mds {
namespace {

class FullStoreTest : public MdsFixture {
 protected:
  // The batch that filled it is answered; what comes then is refused.
  void Fill() {
    mem.SetRoom(false);
    Touch(kRoot, "last");
  }
};

TEST_F(FullStoreTest, RefusesWhatAdds) {
  const uint64_t file = Touch(kRoot, "f");
  Fill();
  EXPECT_EQ(Code(wire::MDS_CREATE, New(kRoot, "g", 0644)), ErrorCode::kNoSpace);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "d", S_IFDIR | 0755)), ErrorCode::kNoSpace);
  EXPECT_EQ(Code(wire::MDS_TMPFILE, New(kRoot, "", 0644)), ErrorCode::kNoSpace);
  EXPECT_EQ(Code(wire::MDS_LINK, NewLink(file, kRoot, "h")), ErrorCode::kNoSpace);
  EXPECT_EQ(Code(wire::MDS_SETXATTR, Xattr(file, "user.x", "1")), ErrorCode::kNoSpace);
  EXPECT_EQ(Stat(file).attr().nlink(), 1u);
}

TEST_F(FullStoreTest, LetsEverythingElseGoOnAndAddsAgainWhenThereIsRoom) {
  const uint64_t file = Touch(kRoot, "f");
  Fill();
  EXPECT_EQ(Code(wire::MDS_CREATE, New(kRoot, "f", 0644)), ErrorCode::kOk);  // opens it
  wire::SetAttrRequest mode = Change(file);
  mode.set_mode(0600);
  EXPECT_EQ(Code(wire::MDS_SETATTR, mode), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_RENAME, Move(kRoot, "f", kRoot, "g")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_UNLINK, Name(kRoot, "last")), ErrorCode::kOk);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "d", S_IFDIR | 0755)), ErrorCode::kNoSpace);
  mem.SetRoom(true);
  EXPECT_EQ(Code(wire::MDS_MKNOD, New(kRoot, "d", S_IFDIR | 0755)), ErrorCode::kOk);
}

}  // namespace
}  // namespace weir::mds
