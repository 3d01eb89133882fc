// FileAttr: what the MDS knows of one inode, in the form that code uses.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "common/base/ids.h"
#include "common/placement/striper.h"

namespace weir {
namespace wire {
class Attr;
}

namespace client {

struct FileAttr {
  InodeId inode;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t nlink = 0;
  uint64_t size = 0;
  int64_t atime_ns = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  int64_t btime_ns = 0;
  uint64_t rdev = 0;
  uint64_t version = 0;
  uint64_t blocks = 0;
  uint64_t allocated_end = 0;  // space is kept up to here, maybe behind the end
  bool has_acl = false;
  bool may_have_capability = false;
  uint64_t quota_room = UINT64_MAX;  // bytes that it may grow by
  FileLayout layout;

  [[nodiscard]] bool IsRegular() const { return S_ISREG(mode); }
};

FileAttr FromWire(const wire::Attr& attr);
// For the kernel, which takes an inode without a type for a broken one: EIO from then on. So it
// must be known what it is.
void CheckKnown(const FileAttr& attr);
struct stat ToStat(const FileAttr& attr);

}  // namespace client
}  // namespace weir
