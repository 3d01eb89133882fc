// Users and groups as people type them.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace weir::osdctl {

// A number, or a name of this machine's user or group database; else kInvalid.
Result<uint32_t> OwnerId(const std::string& text, bool is_user);

}  // namespace weir::osdctl
