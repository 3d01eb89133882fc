// A queue without any scheduler: first come first served, `depth` requests on the device at a time.
// What the engine is compared with where it has nothing to decide.
#pragma once

#include "tools/sim/engine/policy.h"

namespace weir::sim {

PolicyFactory PlainFifo(uint32_t depth);

}  // namespace weir::sim
