// mount -o remount: changes the flags of a mount, as mount(8) has its helpers do.
#pragma once

#include <string>

#include "common/base/result.h"
#include "tools/weirfs/options.h"

namespace weir::weirfs {

// Sets ro or rw and the rules for access times to what `options` say, as mount(8) tells all of
// them; of nosuid, nodev, noexec, sync and dirsync it changes those that they name. kInvalid: no
// WeirFS is mounted there; kBusy: `ro` while files are open for writing.
Status Remount(const std::string& mountpoint, const MountOptions& options);

}  // namespace weir::weirfs
