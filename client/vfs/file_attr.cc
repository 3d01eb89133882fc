#include "client/vfs/file_attr.h"

#include "common/base/check.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr blksize_t kPreferredIoBytes = 4096;  // larger makes stdio read far more than asked

timespec ToTimespec(int64_t ns) {
  int64_t seconds = ns / kNsPerSecond;
  int64_t rest = ns % kNsPerSecond;
  if (rest < 0) {  // before 1970
    rest += kNsPerSecond;
    --seconds;
  }
  return {seconds, rest};
}

FileLayout FromWire(const wire::Layout& layout) {
  FileLayout out;
  if (layout.stripe_unit() == 0) return out;  // directories of a cluster without a pool
  out.stripe_unit = layout.stripe_unit();
  out.stripe_count = layout.stripe_count();
  out.object_size = layout.object_size();
  out.pool = PoolId(layout.pool());
  out.tier = TierName::FromWire(layout.tier());
  return out;
}
}  // namespace

FileAttr FromWire(const wire::Attr& attr) {
  FileAttr out;
  out.inode = InodeId(attr.inode());
  out.mode = attr.mode();
  out.uid = attr.uid();
  out.gid = attr.gid();
  out.nlink = attr.nlink();
  out.size = attr.size();
  out.atime_ns = attr.atime_ns();
  out.mtime_ns = attr.mtime_ns();
  out.ctime_ns = attr.ctime_ns();
  out.btime_ns = attr.btime_ns();
  out.rdev = attr.rdev();
  out.version = attr.version();
  out.blocks = attr.blocks();
  out.allocated_end = attr.allocated_end();
  out.has_acl = attr.has_acl();
  out.may_have_capability = attr.may_have_capability();
  if (attr.has_quota_room()) out.quota_room = attr.quota_room();
  out.layout = FromWire(attr.layout());
  return out;
}

void CheckKnown(const FileAttr& attr) {
  WEIR_CHECK((attr.mode & S_IFMT) != 0, "attributes for the kernel of an inode that is not known");
}

struct stat ToStat(const FileAttr& attr) {
  CheckKnown(attr);
  struct stat st {};
  st.st_ino = attr.inode.value;
  st.st_mode = attr.mode;
  st.st_nlink = attr.nlink;
  st.st_uid = attr.uid;
  st.st_gid = attr.gid;
  st.st_rdev = attr.rdev;
  st.st_size = static_cast<off_t>(attr.size);
  st.st_blksize = kPreferredIoBytes;
  st.st_blocks = static_cast<blkcnt_t>(attr.blocks);
  st.st_atim = ToTimespec(attr.atime_ns);
  st.st_mtim = ToTimespec(attr.mtime_ns);
  st.st_ctim = ToTimespec(attr.ctime_ns);
  return st;
}

}  // namespace weir::client
