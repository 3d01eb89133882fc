// ListingPosition: where a stream stands in a directory, as the number that telldir(3) tells.
//
// Nothing is kept here of a stream, and positions of it are used again by seekdir, by kernels that
// share one listing between streams, by NFS servers that open the directory for each request, and
// by a successor of this process. So the number says also where the listing ends: names that were
// made or renamed after it began stand behind that, and a listing never runs after them. Streams
// that began before and after a change so have different numbers for the same name, and none goes
// on in a listing that the kernel keeps of the other.
//
// The end is rounded up by less than one part in 128, which a float of 13 bits can say. While it is
// below 2^19 the number fits 31 bits, for programs of 32 bits. Positions of processes that did not
// know ends (below 2^30) mean: the end as of now.
// Pure.
#pragma once

#include <cstdint>

namespace weir::client {

struct ListingPosition {
  uint64_t at = 0;   // behind that one
  uint64_t end = 0;  // before that one; 0: not known yet
};

// Requires: at < end < 2^48.
uint64_t EncodePosition(const ListingPosition& position);
// What no encoding gives means some place in the listing.
ListingPosition DecodePosition(uint64_t number);

}  // namespace weir::client
