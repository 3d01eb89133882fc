// Who asks, and the POSIX permission rules that follow from it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace weir::mds {

class InodeRecord;

struct Credentials {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
  std::string exe;  // of rules only; empty: not known

  [[nodiscard]] bool IsRoot() const { return uid == 0; }
  [[nodiscard]] bool InGroup(uint32_t group) const;
  [[nodiscard]] bool Owns(const InodeRecord& inode) const;  // or is root
};

// As of access(2).
inline constexpr uint32_t kMayRead = 4;
inline constexpr uint32_t kMayWrite = 2;
inline constexpr uint32_t kMayExecute = 1;

// kAccess unless the mode or the ACL grants all of `mask`. Root may everything but execute a file
// that nobody may.
Status CheckAccess(const Credentials& who, const InodeRecord& inode, uint32_t mask);

// kPermission when the sticky bit of `directory` protects `entry` from `who`.
Status CheckSticky(const Credentials& who, const InodeRecord& directory, const InodeRecord& entry);

// `mode` after a write or a change of owner by somebody unprivileged: without set-uid, and without
// set-gid where that means "run as the group".
uint32_t WithoutSetIds(uint32_t mode);

}  // namespace weir::mds
