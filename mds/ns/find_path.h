// FindPath: the inode at a path below the root of the file system, for administrators: no
// permissions, symbolic links not followed. kNotFound, kNotDirectory and, of "..", kInvalid say how
// far the path goes.
#pragma once

#include <string>

#include "mds/ns/operation.h"

namespace weir::mds {

Result<Inode> FindPath(Operation& op, const std::string& path);
// The same, and it is a directory.
Result<Inode> FindDirectory(Operation& op, const std::string& path);

}  // namespace weir::mds
