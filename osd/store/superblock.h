// Reading and writing the superblocks of an OSD's device; bytes in osd/format/superblock_format.h.
#pragma once

#include "common/disk/block_device.h"
#include "osd/format/superblock_format.h"
#include "osd/store/object_store.h"

namespace weir::osd {

// The valid superblock with the highest generation. kNotFound: there is no sign of one; kCorrupt:
// there is, but no copy is valid.
Result<Superblock> LoadSuperblock(BlockDevice& device);
// One copy, for a checker; kCorrupt: it is not valid.
Result<Superblock> LoadSuperblockCopy(BlockDevice& device, uint64_t offset);
// Writes both copies, one after the other.
Status StoreSuperblock(BlockDevice& device, Superblock super);

OsdIdentity IdentityOf(const Superblock& super);
// kInvalid when a uuid is too long.
Status SetIdentity(const OsdIdentity& identity, Superblock* super);

}  // namespace weir::osd
