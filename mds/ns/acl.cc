#include "mds/ns/acl.h"

#include <sys/stat.h>

#include <algorithm>

#include "mds/format/ns_values.pb.h"
#include "mds/ns/credentials.h"

namespace weir::mds {
namespace {

constexpr uint16_t kUserObj = 1;
constexpr uint16_t kUser = 2;
constexpr uint16_t kGroupObj = 4;
constexpr uint16_t kGroup = 8;
constexpr uint16_t kMask = 16;
constexpr uint16_t kOther = 32;
constexpr uint32_t kVersion = 2;
constexpr uint32_t kNoId = UINT32_MAX;
constexpr size_t kHeaderBytes = 4;
constexpr size_t kEntryBytes = 8;

uint32_t ReadLittleEndian(std::string_view bytes, size_t offset, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i > 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i - 1]);
  }
  return value;
}

void AppendLittleEndian(uint32_t value, size_t size, std::string* out) {
  for (size_t i = 0; i < size; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

Result<std::optional<Acl>> Acl::Parse(std::string_view bytes) {
  const bool whole =
      bytes.size() >= kHeaderBytes && (bytes.size() - kHeaderBytes) % kEntryBytes == 0;
  if (!whole || ReadLittleEndian(bytes, 0, kHeaderBytes) != kVersion) {
    return Status(ErrorCode::kInvalid, "not an access control list of version 2");
  }
  Acl acl = Stored(bytes);
  if (acl.entries_.empty()) return std::optional<Acl>();
  if (!acl.IsValid()) {
    return Status(ErrorCode::kInvalid,
                  "an access control list needs owner, group and others, in this order, and a mask "
                  "beside named users or groups");
  }
  return std::optional<Acl>(std::move(acl));
}

Acl Acl::Stored(std::string_view bytes) {
  Acl acl;
  for (size_t at = kHeaderBytes; at + kEntryBytes <= bytes.size(); at += kEntryBytes) {
    Entry& entry = acl.entries_.emplace_back();
    entry.tag = static_cast<uint16_t>(ReadLittleEndian(bytes, at, 2));
    entry.permissions = static_cast<uint16_t>(ReadLittleEndian(bytes, at + 2, 2));
    const bool named = entry.tag == kUser || entry.tag == kGroup;
    entry.id = named ? ReadLittleEndian(bytes, at + 4, 4) : kNoId;
  }
  return acl;
}

std::string Acl::Bytes() const {
  std::string bytes;
  AppendLittleEndian(kVersion, kHeaderBytes, &bytes);
  for (const Entry& entry : entries_) {
    AppendLittleEndian(entry.tag, 2, &bytes);
    AppendLittleEndian(entry.permissions, 2, &bytes);
    AppendLittleEndian(entry.id, 4, &bytes);
  }
  return bytes;
}

// The tags come in ascending order, those of named ones any number of times.
bool Acl::IsValid() const {
  uint16_t last = 0;
  uint16_t seen = 0;
  for (const Entry& entry : entries_) {
    const bool named = entry.tag == kUser || entry.tag == kGroup;
    const bool known = named || entry.tag == kUserObj || entry.tag == kGroupObj ||
                       entry.tag == kMask || entry.tag == kOther;
    if (!known || entry.permissions > 7 || (named && entry.id == kNoId)) return false;
    if (entry.tag < last || (entry.tag == last && !named)) return false;
    last = entry.tag;
    seen |= entry.tag;
  }
  constexpr uint16_t kNeeded = kUserObj | kGroupObj | kOther;
  const bool needs_mask = (seen & (kUser | kGroup)) != 0;
  return (seen & kNeeded) == kNeeded && (!needs_mask || (seen & kMask) != 0);
}

Acl::Entry* Acl::Find(uint16_t tag) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [tag](const Entry& entry) { return entry.tag == tag; });
  return found == entries_.end() ? nullptr : &*found;
}

Acl::Entry& Acl::GroupClass() {
  Entry* mask = Find(kMask);
  return mask != nullptr ? *mask : *Find(kGroupObj);
}

uint32_t Acl::Mode() const {
  Acl copy = *this;
  return static_cast<uint32_t>(copy.Find(kUserObj)->permissions << 6 |
                               copy.GroupClass().permissions << 3 | copy.Find(kOther)->permissions);
}

bool Acl::IsOnlyMode() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.tag == kUserObj || entry.tag == kGroupObj || entry.tag == kOther;
  });
}

void Acl::FollowMode(uint32_t mode) {
  Find(kUserObj)->permissions = mode >> 6 & 7;
  GroupClass().permissions = mode >> 3 & 7;
  Find(kOther)->permissions = mode & 7;
}

uint32_t Acl::Inherit(uint32_t mode) {
  const uint32_t granted = mode & Mode();
  FollowMode(granted);
  return granted;
}

bool Acl::Masked(const Entry& entry, uint32_t mask) const {
  uint32_t granted = entry.permissions;
  for (const Entry& other : entries_) {
    if (other.tag == kMask) granted &= other.permissions;
  }
  return (granted & mask) == mask;
}

bool Acl::Grants(const Credentials& who, const InodeRecord& inode, uint32_t mask) const {
  bool in_some_group = false;
  for (const Entry& entry : entries_) {
    const bool is_owner = entry.tag == kUserObj && who.uid == inode.uid();
    if (is_owner || (entry.tag == kOther && !in_some_group)) {
      return (entry.permissions & mask) == mask;
    }
    if (entry.tag == kUser && who.uid == entry.id) return Masked(entry, mask);
    const bool in_group = (entry.tag == kGroupObj && who.InGroup(inode.gid())) ||
                          (entry.tag == kGroup && who.InGroup(entry.id));
    if (!in_group) continue;
    in_some_group = true;
    if ((entry.permissions & mask) == mask) return Masked(entry, mask);
  }
  return false;
}

void InheritAcl(const InodeRecord& directory, uint32_t umask, InodeRecord* made) {
  if (S_ISLNK(made->mode())) return;
  if (directory.acl_default().empty()) {
    made->set_mode(made->mode() & ~(umask & 0777));
    return;
  }
  Acl acl = Acl::Stored(directory.acl_default());
  made->set_mode((made->mode() & ~0777u) | acl.Inherit(made->mode() & 0777));
  if (!acl.IsOnlyMode()) made->set_acl_access(acl.Bytes());
  if (S_ISDIR(made->mode())) made->set_acl_default(directory.acl_default());
}

Status ChangeAcl(std::string_view name, std::string_view bytes, bool keeps_set_gid,
                 InodeRecord* inode) {
  if (S_ISLNK(inode->mode())) {
    return {ErrorCode::kNotSupported, "a symbolic link has no access control list"};
  }
  std::optional<Acl> acl;
  if (!bytes.empty()) {
    WEIR_ASSIGN_OR_RETURN(acl, Acl::Parse(bytes));
  }
  if (name == kAclDefault) {
    if (acl.has_value() && !S_ISDIR(inode->mode())) {
      return {ErrorCode::kAccess, "only a directory has a default access control list"};
    }
    inode->set_acl_default(acl.has_value() ? acl->Bytes() : std::string());
    return Status::Ok();
  }
  inode->clear_acl_access();
  if (!acl.has_value()) return Status::Ok();
  inode->set_mode((inode->mode() & ~0777u) | acl->Mode());
  if (!keeps_set_gid) inode->set_mode(inode->mode() & ~static_cast<uint32_t>(S_ISGID));
  if (!acl->IsOnlyMode()) inode->set_acl_access(acl->Bytes());
  return Status::Ok();
}

void ReplaceMode(uint32_t mode, InodeRecord* inode) {
  inode->set_mode((inode->mode() & S_IFMT) | (mode & 07777));
  if (inode->acl_access().empty()) return;
  Acl acl = Acl::Stored(inode->acl_access());
  acl.FollowMode(mode);
  inode->set_acl_access(acl.Bytes());
}

}  // namespace weir::mds
