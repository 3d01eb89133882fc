// Who asks, and the POSIX permission rules that follow from it, as Linux has them. Pure.
//
// The mount's kernel has judged before, by attributes that may be old; so where groups and
// capabilities of somebody could not be seen, what he asks for is granted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace weir::mds {

class InodeRecord;

// Numbers of capabilities(7).
enum class Capability : uint8_t {
  kChown = 0,
  kDacOverride = 1,
  kDacReadSearch = 2,
  kFowner = 3,
  kFsetid = 4,
  kSysAdmin = 21,
  kMknod = 27,
  kSetfcap = 31,
};

struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Credentials {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
  std::string exe;     // of rules only; empty: not known
  std::string cgroup;  // likewise
  uint64_t capabilities = 0;
  std::vector<IdRange> uids;  // what his user namespace maps; none: everybody
  std::vector<IdRange> gids;
  bool limited = false;  // root, and he has only those capabilities
  bool unknown = false;  // neither groups nor capabilities could be seen

  [[nodiscard]] bool IsRoot() const { return uid == 0; }
  // False where that is not known: of what the kernel does not judge, as rights to classes.
  [[nodiscard]] bool InGroup(uint32_t group) const;

  // Whether he has that capability: over the whole machine; over an inode, both ids of which must
  // be of his user namespace then; over what belongs to a user.
  [[nodiscard]] bool Can(Capability capability) const;
  [[nodiscard]] bool Can(Capability capability, const InodeRecord& inode) const;
  [[nodiscard]] bool CanAs(Capability capability, uint32_t owner) const;
  // Whether he may give something to them.
  [[nodiscard]] bool Maps(uint32_t some_uid, uint32_t some_gid) const;

  [[nodiscard]] bool Owns(const InodeRecord& inode) const;  // or may act as if he did
  // Whether he may have files that run as that group.
  [[nodiscard]] bool MayRunAsGroup(const InodeRecord& inode) const;
};

// As of access(2).
inline constexpr uint32_t kMayRead = 4;
inline constexpr uint32_t kMayWrite = 2;
inline constexpr uint32_t kMayExecute = 1;

// kAccess unless the mode, the ACL or a capability grants all of `mask`. Nobody executes a file
// that nobody may.
Status CheckAccess(const Credentials& who, const InodeRecord& inode, uint32_t mask);

// kPermission when the sticky bit of `directory` protects `entry` from `who`.
Status CheckSticky(const Credentials& who, const InodeRecord& directory, const InodeRecord& entry);

// The mode after a write or a change of owner by somebody who may not keep set-id bits: without
// set-uid, and without set-gid where that means "run as the group", or if the group is not his.
uint32_t WithoutSetIds(const InodeRecord& inode, bool his_group);

}  // namespace weir::mds
