// Where the parts of a contract go (Stonehenge §3.2; RULES.md §4.1). Parts need requests per
// second and bytes at once, so this is bin packing in two dimensions. Heuristic: each part goes to
// the server that has the most left of what it is shortest of,
//
//   max over servers of min(free IOPS / IOPSmax, free bytes / capacity)   after the part is there
//
// (Toyoda: every resource weighs as much as it is scarce). A copy is striped over `stripe` servers;
// copies stand on distinct servers. All parts find a place or none does.
//
// Example: servers with .5 of their IOPS and .9 of their bytes left, and .6 and .6: the second.
// Units: requests per second, bytes. Cost: O(parts * servers). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/qos/service_contract.h"

namespace weir {

struct ContractServer {
  double iops_max = 0;
  double iops_promised = 0;
  uint64_t capacity_bytes = 0;
  uint64_t promised_bytes = 0;
};

struct PlacementOptions {
  size_t stripe = 1;  // servers of each copy
  double leeway = 1;  // room for skew, PartOf
};

// For each copy the servers of its parts, as indices; none if it does not fit. The rate of a part
// is what its bound needs by (10), or what it asks for, the larger.
std::optional<std::vector<std::vector<size_t>>> PlaceContract(
    const ServiceContract& contract, const std::vector<ContractServer>& servers,
    const PlacementOptions& options = {});

}  // namespace weir
