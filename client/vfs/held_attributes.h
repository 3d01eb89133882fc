// HeldAttributes: mode, owner and times that a process here set on a file which this mount writes
// under a lease, and of which the MDS is told together with the data: at close, fsync or recall, or
// when they are 4 s old. As a local filesystem they are there for everybody at once, and durable
// with the next fsync or close. So unpacking an archive costs one durable report per file, not one
// per call.
//
// Pure. Nobody but the MDS judges what is not plain: set-id bits, ACLs, the groups of a caller.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "client/vfs/file_attr.h"

namespace weir::client {

struct HeldAttributes {
  std::optional<uint32_t> mode;  // permission bits
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<int64_t> atime_ns;
  std::optional<int64_t> mtime_ns;
  int64_t ctime_ns = 0;  // of the last of them

  [[nodiscard]] bool empty() const { return ctime_ns == 0; }
  [[nodiscard]] bool only_times() const { return !mode && !uid && !gid; }
  // `newer` was set after these.
  void Take(const HeldAttributes& newer);
  void ApplyTo(FileAttr* attr) const;
};

// The lower nine bits of the mode that an access control list says when it says no more, and is
// then not kept: whoever unpacks an archive with lists sets one for each file. None: it says more,
// or is no list. `bytes` as of the attribute system.posix_acl_access.
std::optional<uint32_t> ModeOfAcl(std::span<const uint8_t> bytes);

// Whether a caller of that user may set that for sure, and nothing else follows from it.
bool MayHold(const FileAttr& file, const HeldAttributes& change, uint32_t caller_uid);

}  // namespace weir::client
