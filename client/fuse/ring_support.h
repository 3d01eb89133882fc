// Whether this machine has FUSE over io_uring.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace weir::client {

// kNotSupported says what is missing and how to get it: Linux 6.14 and newer, where the module's
// parameter is set.
Status RingsOffered();

// The kernel makes a queue for each of them.
uint16_t PossibleProcessors();
// From the kernel's list, as "0-3" or "0,2-5"; pure. 0: it is not understood.
uint16_t CountProcessors(const std::string& list);

// What requests in rings may take at most of this machine's memory, in bytes.
uint64_t RingBytesMax();

}  // namespace weir::client
