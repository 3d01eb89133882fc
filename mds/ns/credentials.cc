#include "mds/ns/credentials.h"

#include <sys/stat.h>

#include <algorithm>

#include "mds/format/ns_values.pb.h"
#include "mds/ns/acl.h"

namespace weir::mds {

bool Credentials::InGroup(uint32_t group) const {
  return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
}

bool Credentials::Owns(const InodeRecord& inode) const {
  return IsRoot() || uid == inode.uid();
}

Status CheckAccess(const Credentials& who, const InodeRecord& inode, uint32_t mask) {
  const uint32_t mode = inode.mode();
  if (who.IsRoot()) {
    const bool runs_nobody = S_ISREG(mode) && (mode & 0111) == 0;
    if ((mask & kMayExecute) != 0 && runs_nobody) return Status(ErrorCode::kAccess);
    return Status::Ok();
  }
  // An ACL that grants the group class nothing is not asked, as in Linux.
  if (who.uid != inode.uid() && !inode.acl_access().empty() && (mode & 070) != 0) {
    if (Acl::Stored(inode.acl_access()).Grants(who, inode, mask)) return Status::Ok();
    return Status(ErrorCode::kAccess);
  }
  uint32_t granted = mode & 7;
  if (who.uid == inode.uid()) {
    granted = mode >> 6 & 7;
  } else if (who.InGroup(inode.gid())) {
    granted = mode >> 3 & 7;
  }
  if ((granted & mask) != mask) return Status(ErrorCode::kAccess);
  return Status::Ok();
}

Status CheckSticky(const Credentials& who, const InodeRecord& directory, const InodeRecord& entry) {
  if ((directory.mode() & S_ISVTX) == 0) return Status::Ok();
  if (who.Owns(directory) || who.Owns(entry)) return Status::Ok();
  return {ErrorCode::kPermission, "the directory is sticky and the entry is somebody else's"};
}

uint32_t WithoutSetIds(uint32_t mode) {
  mode &= ~static_cast<uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<uint32_t>(S_ISGID);
  return mode;
}

}  // namespace weir::mds
