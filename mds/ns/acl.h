// Access control lists as POSIX.1e drafted them and Linux keeps them: the bytes of the attributes
// system.posix_acl_access and system.posix_acl_default, and how they and the mode follow each
// other. Rules as of Linux's fs/posix_acl.c, so that it does not matter who checks. Pure.
//
// Bytes: a little-endian version, 2, then entries of tag, permissions and id. What is stored is
// valid.
// Errors: kInvalid for bytes that are no list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace weir::mds {

struct Credentials;
class InodeRecord;

inline constexpr std::string_view kAclAccess = "system.posix_acl_access";
inline constexpr std::string_view kAclDefault = "system.posix_acl_default";

inline bool IsAcl(std::string_view name) {
  return name == kAclAccess || name == kAclDefault;
}

class Acl {
 public:
  // None for a list without entries: what removes one.
  static Result<std::optional<Acl>> Parse(std::string_view bytes);
  // Of a record; requires valid bytes.
  static Acl Stored(std::string_view bytes);
  [[nodiscard]] std::string Bytes() const;

  // The lower nine bits of the mode that goes with it; whether they say all of it.
  [[nodiscard]] uint32_t Mode() const;
  [[nodiscard]] bool IsOnlyMode() const;
  // After chmod.
  void FollowMode(uint32_t mode);
  // As the list of something made with that mode: the list grants no more than the mode, and the
  // mode no more than the list. Returns the mode's lower nine bits.
  uint32_t Inherit(uint32_t mode);
  [[nodiscard]] bool Grants(const Credentials& who, const InodeRecord& inode, uint32_t mask) const;

 private:
  struct Entry {
    uint16_t tag = 0;
    uint16_t permissions = 0;
    uint32_t id = 0;
  };
  [[nodiscard]] bool IsValid() const;
  [[nodiscard]] bool Masked(const Entry& entry, uint32_t mask) const;
  Entry* Find(uint16_t tag);
  // Whose permissions the mode shows as the group's.
  Entry& GroupClass();

  std::vector<Entry> entries_;
};

// The ACL part of an inode's creation: what it inherits from its directory, or else the umask.
void InheritAcl(const InodeRecord& directory, uint32_t umask, InodeRecord* made);

// Sets or, with an empty list, removes one; the mode follows. Errors: kInvalid, kAccess for a
// default list of what is no directory, kNotSupported for a symbolic link. Who may is the caller's
// business; `keeps_set_gid`: whether he may have files that run as their group.
Status ChangeAcl(std::string_view name, std::string_view bytes, bool keeps_set_gid,
                 InodeRecord* inode);

// chmod: the permission bits, and the list that goes with them.
void ReplaceMode(uint32_t mode, InodeRecord* inode);

}  // namespace weir::mds
