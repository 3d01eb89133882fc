// AffinityAnomaly: the one case in which the mounts (coordinators) of a class miss its total (DSFQ
// §3.3). A mount tells an OSD, with each request, what the class was sent elsewhere meanwhile; so
// of two mounts that have no OSD in common neither tells anybody what the other had. If one uses
// osd.0 only and another osd.1 only, the class gets its share, its promise and its limit on each of
// them instead of once in all. One request is enough for a mount to tell: it brings the whole sum.
//
// Pure; for whoever sees several mounts' counters (osdctl status, the simulator).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace weir {

struct CoordinatorUse {
  std::string name;
  std::map<OsdId, double> osds;  // what it sent to each that it uses, in any one unit
};

// A sentence for people about the two coordinators of a class with no OSD in common that use the
// most; none when any two have one.
std::optional<std::string> AffinityAnomaly(std::vector<CoordinatorUse> coordinators);

}  // namespace weir
