// Goal: an ordinary user who cannot mount is told what root has to change, and where.
#include "tools/weirfs/user_mount.h"

#include <gmock/gmock.h>

namespace weir::weirfs {
namespace {

TEST(UserMountTest, TheLineOfFuseConfIsFound) {
  EXPECT_EQ(AllowsOthers(""), 0);
  EXPECT_EQ(AllowsOthers("# user_allow_other lets users\nmount_max = 10\n"), 0);
  EXPECT_EQ(AllowsOthers("mount_max = 10\n\n#user_allow_other\n"), -3);
  EXPECT_EQ(AllowsOthers("#user_allow_other\n  user_allow_other \n"), 2);
  EXPECT_EQ(AllowsOthers("user_allow_other"), 1);
}

}  // namespace
}  // namespace weir::weirfs
