// A mark in the kernel's queue of requests.
#pragma once

#include <cstdint>

namespace weir::client {

// The kernel puts `mark`, which is even and no request's number, behind all that it has queued: it
// comes as the number of a NOTIFY_REPLY (from NOTIFY_RETRIEVE of no bytes of the root). `device`:
// the kernel's end of a mount. False: the kernel would not.
bool AskForMark(int device, uint64_t mark);

}  // namespace weir::client
