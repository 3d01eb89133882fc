#include "client/vfs/file_attr.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

// The kernel takes such an inode for a broken one: EIO from then on.
TEST(FileAttrDeathTest, NothingWithoutATypeReachesTheKernel) {
  FileAttr unknown;
  unknown.inode = InodeId(7);
  EXPECT_DEATH(ToStat(unknown), "inode that is not known");
  unknown.mode = 0644;
  EXPECT_DEATH(ToStat(unknown), "inode that is not known");
}

}  // namespace
}  // namespace weir::client
