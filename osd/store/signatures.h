// What a device already holds, by the magic numbers that others leave. Own code on purpose: mkfs
// must not depend on which probing library a machine has.
#pragma once

#include <string>

#include "common/disk/block_device.h"

namespace weir::osd {

// "an ext2/3/4 filesystem" and the like; empty when nothing is recognised. Not for WeirFS itself.
Result<std::string> FindForeignSignature(BlockDevice& device);

}  // namespace weir::osd
