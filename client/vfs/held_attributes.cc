#include "client/vfs/held_attributes.h"

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include <algorithm>
#include <cstring>

namespace weir::client {
namespace {

constexpr uint32_t kSetIds = S_ISUID | S_ISGID;

template <typename T>
void TakeIfSet(const std::optional<T>& newer, std::optional<T>* value) {
  if (newer.has_value()) *value = newer;
}

}  // namespace

void HeldAttributes::Take(const HeldAttributes& newer) {
  TakeIfSet(newer.mode, &mode);
  TakeIfSet(newer.uid, &uid);
  TakeIfSet(newer.gid, &gid);
  TakeIfSet(newer.atime_ns, &atime_ns);
  TakeIfSet(newer.mtime_ns, &mtime_ns);
  ctime_ns = std::max(ctime_ns, newer.ctime_ns);
}

void HeldAttributes::ApplyTo(FileAttr* attr) const {
  if (mode.has_value()) attr->mode = (attr->mode & S_IFMT) | *mode;
  attr->uid = uid.value_or(attr->uid);
  attr->gid = gid.value_or(attr->gid);
  attr->atime_ns = atime_ns.value_or(attr->atime_ns);
  attr->mtime_ns = mtime_ns.value_or(attr->mtime_ns);
  attr->ctime_ns = std::max(attr->ctime_ns, ctime_ns);
}

std::optional<uint32_t> ModeOfAcl(std::span<const uint8_t> bytes) {
  struct {
    posix_acl_xattr_header header;
    posix_acl_xattr_entry entries[3];
  } acl;
  if (bytes.size() != sizeof(acl)) return std::nullopt;
  std::memcpy(&acl, bytes.data(), sizeof(acl));
  if (le32toh(acl.header.a_version) != POSIX_ACL_XATTR_VERSION) return std::nullopt;
  constexpr uint16_t kTags[] = {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER};
  uint32_t mode = 0;
  for (size_t i = 0; i < 3; ++i) {
    const uint32_t permissions = le16toh(acl.entries[i].e_perm);
    if (le16toh(acl.entries[i].e_tag) != kTags[i] || permissions > 7) return std::nullopt;
    mode = mode << 3 | permissions;
  }
  return mode;
}

bool MayHold(const FileAttr& file, const HeldAttributes& change, uint32_t caller_uid) {
  const uint32_t bits = file.mode | change.mode.value_or(0);
  if (!file.IsRegular() || file.has_acl || (bits & kSetIds) != 0) return false;
  const bool gives_away = change.uid.has_value() || change.gid.has_value();
  if (gives_away && file.may_have_capability) return false;
  return caller_uid == 0 || (caller_uid == file.uid && !gives_away);
}

}  // namespace weir::client
