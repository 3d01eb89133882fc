// CheckIds: the part of CheckStore that looks at the index of slots, at op ids and at floors, each
// against the heads of the objects. Internal to osd/store.
#pragma once

#include "common/kv/kv_store.h"
#include "osd/store/store_check.h"

namespace weir::osd {

// Into `repairs` goes what CheckOptions::repair may do; the caller applies it.
Status CheckIds(KvStore& kv, Findings* findings, WriteBatch* repairs);

}  // namespace weir::osd
