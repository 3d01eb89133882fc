// dmClock: the published way to give reservations, weights and limits over several servers, as a
// baseline beside the cluster-scope promises of this project. Written from the description in
// "mClock: Handling Throughput Variability for Hypervisor IO Scheduling" (OSDI 2010, §3-4).
//
//   R = max{R_prev + rho / r, now}     L = max{L_prev + delta / l, now}     P = max{P_prev + delta
//   / w, now}
//
// delta: what the class was served on all servers since its last request to this one, rho: the part
// of it that was served by reservation, each with the request's own cost. A server first serves the
// smallest R that is due, then the smallest P whose L is due; whoever is served by weight gets its
// R tags back by cost / r. A class that was idle starts at the smallest P of the others. Costs are
// tokens of 1 KiB here, so that rates mean the same as elsewhere in the simulator.
#pragma once

#include <map>
#include <memory>

#include "tools/sim/engine/cluster.h"

namespace weir::sim {

// One server; `depth` requests on the device at a time.
PolicyFactory DmClock(uint32_t depth);
// What its coordinators count; one hook serves all coordinators of the cluster.
std::unique_ptr<CoordinatorHook> DmClockCoordinators();

}  // namespace weir::sim
