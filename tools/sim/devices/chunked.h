// A flat device that is given large writes in pieces, one after the other, as a store does that
// asks Scheduler::Advise: between two pieces of one request it serves a piece of each of the
// others. With pieces that are never smaller than the request it is Flat.
#pragma once

#include "tools/sim/engine/device.h"

namespace weir::sim {

// Size of a piece at this moment; must be > 0.
using PieceSize = std::function<uint64_t()>;

DeviceFactory Chunked(double bytes_per_s, PieceSize piece);

}  // namespace weir::sim
