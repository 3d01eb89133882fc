#include "mds/ns/credentials.h"

#include <sys/stat.h>

#include <algorithm>

#include "mds/format/ns_values.pb.h"
#include "mds/ns/acl.h"

namespace weir::mds {
namespace {

bool Holds(const std::vector<IdRange>& ranges, uint32_t id) {
  if (ranges.empty()) return true;
  return std::any_of(ranges.begin(), ranges.end(),
                     [id](const IdRange& range) { return id - range.first < range.count; });
}

bool Has(const Credentials& who, Capability capability) {
  if (who.unknown || (who.IsRoot() && !who.limited)) return true;
  return (who.capabilities >> static_cast<uint8_t>(capability) & 1) != 0;
}

bool GrantsByMode(const Credentials& who, const InodeRecord& inode, uint32_t mask) {
  const uint32_t mode = inode.mode();
  // An ACL that grants the group class nothing is not asked, as in Linux.
  if (who.uid != inode.uid() && !inode.acl_access().empty() && (mode & 070) != 0) {
    return Acl::Stored(inode.acl_access()).Grants(who, inode, mask);
  }
  uint32_t granted = mode & 7;
  if (who.uid == inode.uid()) {
    granted = mode >> 6 & 7;
  } else if (who.InGroup(inode.gid())) {
    granted = mode >> 3 & 7;
  }
  return (granted & mask) == mask;
}

bool GrantsByCapability(const Credentials& who, const InodeRecord& inode, uint32_t mask) {
  const bool directory = S_ISDIR(inode.mode());
  const bool looks = directory ? (mask & kMayWrite) == 0 : mask == kMayRead;
  if (looks && who.Can(Capability::kDacReadSearch, inode)) return true;
  const bool runs_nobody = !directory && (mask & kMayExecute) != 0 && (inode.mode() & 0111) == 0;
  return !runs_nobody && who.Can(Capability::kDacOverride, inode);
}

}  // namespace

bool Credentials::InGroup(uint32_t group) const {
  return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
}

bool Credentials::Can(Capability capability) const {
  return Has(*this, capability) && uids.empty() && gids.empty();
}

bool Credentials::Can(Capability capability, const InodeRecord& inode) const {
  return Has(*this, capability) && Maps(inode.uid(), inode.gid());
}

bool Credentials::CanAs(Capability capability, uint32_t owner) const {
  return Has(*this, capability) && Holds(uids, owner);
}

bool Credentials::Maps(uint32_t some_uid, uint32_t some_gid) const {
  return Holds(uids, some_uid) && Holds(gids, some_gid);
}

bool Credentials::Owns(const InodeRecord& inode) const {
  return uid == inode.uid() || CanAs(Capability::kFowner, inode.uid());
}

bool Credentials::MayRunAsGroup(const InodeRecord& inode) const {
  return InGroup(inode.gid()) || Can(Capability::kFsetid, inode);
}

Status CheckAccess(const Credentials& who, const InodeRecord& inode, uint32_t mask) {
  if (GrantsByMode(who, inode, mask) || GrantsByCapability(who, inode, mask)) return Status::Ok();
  return Status(ErrorCode::kAccess);
}

Status CheckSticky(const Credentials& who, const InodeRecord& directory, const InodeRecord& entry) {
  if ((directory.mode() & S_ISVTX) == 0) return Status::Ok();
  if (who.uid == directory.uid() || who.uid == entry.uid()) return Status::Ok();
  if (who.Can(Capability::kFowner, entry)) return Status::Ok();
  return {ErrorCode::kPermission, "the directory is sticky and the entry is somebody else's"};
}

uint32_t WithoutSetIds(const InodeRecord& inode, bool his_group) {
  uint32_t mode = inode.mode() & ~static_cast<uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0 || !his_group) mode &= ~static_cast<uint32_t>(S_ISGID);
  return mode;
}

}  // namespace weir::mds
