// The kernel's answer to FUSE_STATX, byte by byte: its header may be too old to have it.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

struct Time {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  int32_t reserved = 0;
};

struct StatxOut {
  uint64_t keep_seconds = 0;
  uint32_t keep_nanoseconds = 0;
  uint32_t flags = 0;
  uint64_t spare[2] = {};
  uint32_t mask = 0;
  uint32_t blksize = 0;
  uint64_t attributes = 0;
  uint32_t nlink = 0, uid = 0, gid = 0;
  uint16_t mode = 0, spare_mode = 0;
  uint64_t inode = 0, size = 0, blocks = 0, attributes_mask = 0;
  Time atime, btime, ctime, mtime;
  uint32_t rdev_major = 0, rdev_minor = 0, dev_major = 0, dev_minor = 0;
  uint64_t spare_end[14] = {};
};
static_assert(sizeof(StatxOut) == 32 + 256);

Time ToTime(const timespec& time) {
  return {time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
}

Time ToTime(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t seconds = ns / kSecond - (ns % kSecond < 0 ? 1 : 0);
  return {seconds, static_cast<uint32_t>(ns - seconds * kSecond)};
}

}  // namespace

std::string EncodeStatx(const FileAttr& attr, double keep_seconds) {
  const struct stat known = ToStat(attr);
  StatxOut out;
  out.keep_seconds = static_cast<uint64_t>(keep_seconds);
  out.keep_nanoseconds =
      static_cast<uint32_t>((keep_seconds - static_cast<double>(out.keep_seconds)) * 1e9);
  out.mask = STATX_BASIC_STATS;
  if (attr.btime_ns != 0) out.mask |= STATX_BTIME;
  out.blksize = static_cast<uint32_t>(known.st_blksize);
  out.nlink = attr.nlink;
  out.uid = attr.uid;
  out.gid = attr.gid;
  out.mode = static_cast<uint16_t>(attr.mode);
  out.inode = attr.inode.value;
  out.size = attr.size;
  out.blocks = attr.blocks;
  out.atime = ToTime(known.st_atim);
  out.btime = ToTime(attr.btime_ns);
  out.ctime = ToTime(known.st_ctim);
  out.mtime = ToTime(known.st_mtim);
  out.rdev_major = major(known.st_rdev);
  out.rdev_minor = minor(known.st_rdev);
  return {reinterpret_cast<const char*>(&out), sizeof(out)};
}

}  // namespace weir::client
