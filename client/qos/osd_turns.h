// OsdTurns: which of its OSDs a class with a limit over several of them asks next: the OSDs in
// turns. What comes back from one of them at once would leave at once again, and with the order of
// arrival that OSD alone would have all that the limit lets go, of which it gives the class its
// share only. One that answers so slowly that it has more under way than twice what another has,
// and two requests, is left out: that counts against the limit, too (limit_window.h).
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::client {

// An OSD that the class has a request for.
struct OsdTurn {
  uint64_t flying_bytes = 0;
  uint64_t next_bytes = 0;  // of that request
  uint64_t last = 0;        // number of the last departure to it, counted over all OSDs
};

// Index of the one whose turn it is. Requires: there is one.
size_t NextOsdTurn(std::span<const OsdTurn> turns);

}  // namespace weir::client
