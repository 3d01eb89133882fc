// The kernel asks again for what a process took off its queue and did not answer: Linux 6.9.
#pragma once

#include <cstdint>
#include <span>

namespace weir::client {

// Whether the kernel that sent this INIT can.
bool CanAskAgain(std::span<const uint8_t> init);
// `device`: the kernel's end of a mount. Each such request comes again, before newer ones, with its
// number's highest bit set. False: the kernel would not.
bool AskAgain(int device);

}  // namespace weir::client
