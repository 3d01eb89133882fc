// Whether a disk holds anything, of whatever kind: a program that did not make what is there must
// not format over it.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir {

// Where a byte of the file or block device is not zero; UINT64_MAX: nowhere. Holes of a file are
// not read; of what is more than 1 GiB, the first and last MiB and a thousand places between are.
Result<uint64_t> FindData(const std::string& path);

}  // namespace weir
