// Looks at a mountpoint before anything is started for it.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir::weirfs {

// The absolute path of a directory to mount on. Dead mounts that a crashed weirfs left are taken
// away first, and it says so. kNotFound, kNotDirectory, kBusy (something is mounted there) name it.
// `replace`: a live WeirFS there is welcome; whoever mounts takes it away.
Result<std::string> PrepareMountpoint(const std::string& path, bool replace);

}  // namespace weir::weirfs
