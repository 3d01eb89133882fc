// Small files that daemons and tools leave for each other: common/base/files.h, and what is for
// people.
#pragma once

#include <string>

#include "common/base/files.h"

namespace weir::cli {

using weir::LockFile;
using weir::ReadFile;
using weir::WriteFileAtomically;

// The last lines, for an error message.
std::string TailOf(const std::string& path, size_t lines);

}  // namespace weir::cli
