// Looks at a mountpoint before anything is started for it.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir::weirfs {

// The absolute path of a directory to mount on. A stale mount that a crashed weirfs left is taken
// away first. kNotFound, kNotDirectory, kBusy (something is mounted there) name it.
Result<std::string> PrepareMountpoint(const std::string& path);

}  // namespace weir::weirfs
