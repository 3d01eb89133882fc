// AffinityAnomaly: the one case in which the coordinators of a class miss the total (DSFQ §3.3):
// one of them uses only some OSDs, another only others, so neither has anything to tell, and the
// class gets its share on each OSD instead of once in all.
//
// Pure; for whoever sees several coordinators' counters (status reports, the simulator).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/qos/delay_tracker.h"

namespace weir::client {

// A sentence for people when a coordinator of the class uses one OSD only while others use OSDs
// that it does not; none when all is well, or when the class has one coordinator.
std::optional<std::string> AffinityAnomaly(ClassId class_id,
                                           const std::vector<const DelayTracker*>& coordinators);

}  // namespace weir::client
