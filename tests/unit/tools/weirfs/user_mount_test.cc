// Goal: an ordinary user who cannot mount is told what root has to change, and where.
#include "tools/weirfs/user_mount.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir::weirfs {
namespace {

using ::testing::HasSubstr;

TEST(UserMountTest, TheLineOfFuseConfIsFound) {
  EXPECT_EQ(AllowsOthers(""), 0);
  EXPECT_EQ(AllowsOthers("# user_allow_other lets users\nmount_max = 10\n"), 0);
  EXPECT_EQ(AllowsOthers("mount_max = 10\n\n#user_allow_other\n"), -3);
  EXPECT_EQ(AllowsOthers("#user_allow_other\n  user_allow_other \n"), 2);
  EXPECT_EQ(AllowsOthers("user_allow_other"), 1);
}

TEST(UserMountTest, AHelperWithoutRootsRightsIsNamed) {
  const std::string helper = ::testing::TempDir() + "helper_" + std::to_string(getpid());
  EXPECT_THAT(CheckMountHelper(helper).message(),
              HasSubstr("there is no " + helper + " (as root: apt install fuse3)"));
  std::ofstream{helper};
  EXPECT_THAT(CheckMountHelper(helper).message(), HasSubstr(helper + " is not setuid root"));
  const bool by_root = geteuid() == 0;
  chmod(helper.c_str(), S_ISUID | S_IRWXU);
  EXPECT_EQ(CheckMountHelper(helper).ok(), by_root);
  std::filesystem::remove(helper);
}

}  // namespace
}  // namespace weir::weirfs
