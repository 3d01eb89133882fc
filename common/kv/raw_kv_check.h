// Opening a RocksDB on a raw device in order to look, not to work.
#pragma once

#include <memory>

#include "common/fsck/findings.h"
#include "common/kv/rocks_kv_store.h"

namespace weir {

// Mounts the volume, compares its space with itself, opens the store without compactions and, when
// `deep`, verifies every table. Null when it is so damaged that it does not open: the findings
// (`volume`, `tables`) say why. Errors: kIo and the like when the device cannot be read.
//
// Recovery writes: hand in a ScratchDevice where nothing may change.
Result<std::unique_ptr<RawKvStore>> OpenForCheck(BlockDevice& device, Region region, bool deep,
                                                 Findings* findings);

}  // namespace weir
