// The kernel's own structures; its header and libfuse's names do not mix well in one file.
#include <linux/fuse.h>
#include <sys/stat.h>

#include <cstring>

#include "client/fuse/filesystem.h"

namespace weir::client {
namespace {

std::string Bytes(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

void SplitTimeout(double timeout, uint64_t* seconds, uint32_t* nanoseconds) {
  *seconds = static_cast<uint64_t>(timeout);
  *nanoseconds = static_cast<uint32_t>((timeout - static_cast<double>(*seconds)) * 1e9);
}

fuse_attr ToKernel(const struct stat& st) {
  fuse_attr attr{};
  attr.ino = st.st_ino;
  attr.size = static_cast<uint64_t>(st.st_size);
  attr.blocks = static_cast<uint64_t>(st.st_blocks);
  attr.atime = static_cast<uint64_t>(st.st_atim.tv_sec);
  attr.mtime = static_cast<uint64_t>(st.st_mtim.tv_sec);
  attr.ctime = static_cast<uint64_t>(st.st_ctim.tv_sec);
  attr.atimensec = static_cast<uint32_t>(st.st_atim.tv_nsec);
  attr.mtimensec = static_cast<uint32_t>(st.st_mtim.tv_nsec);
  attr.ctimensec = static_cast<uint32_t>(st.st_ctim.tv_nsec);
  attr.mode = st.st_mode;
  attr.nlink = static_cast<uint32_t>(st.st_nlink);
  attr.uid = st.st_uid;
  attr.gid = st.st_gid;
  attr.rdev = static_cast<uint32_t>(st.st_rdev);
  attr.blksize = static_cast<uint32_t>(st.st_blksize);
  return attr;
}

}  // namespace

std::string EncodeOpen(const OpenReply& reply) {
  fuse_open_out out{};
  out.fh = reply.handle;
  if (reply.direct) out.open_flags |= FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
  if (reply.keep_cache) out.open_flags |= FOPEN_KEEP_CACHE;
  if (reply.cache_listing) out.open_flags |= FOPEN_CACHE_DIR;
  return Bytes(&out, sizeof(out));
}

std::string EncodeCreate(const fuse_entry_param& entry, const OpenReply& reply) {
  fuse_entry_out out{};
  out.nodeid = entry.ino;
  out.generation = entry.generation;
  SplitTimeout(entry.entry_timeout, &out.entry_valid, &out.entry_valid_nsec);
  SplitTimeout(entry.attr_timeout, &out.attr_valid, &out.attr_valid_nsec);
  out.attr = ToKernel(entry.attr);
  return Bytes(&out, sizeof(out)) + EncodeOpen(reply);
}

}  // namespace weir::client
