// What the kernel is told of an error: the table of common/base/result.h, and the few codes that
// mean something else at this border.
#pragma once

#include "common/base/result.h"

namespace weir::client {

// A positive errno; 0 for ok.
int KernelErrno(const Status& status);

}  // namespace weir::client
