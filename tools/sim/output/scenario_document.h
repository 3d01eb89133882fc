// The result of a scenario, for people and for scripts.
#pragma once

#include <string>

#include "tools/sim/scenario/scenario.h"

namespace weir::sim {

// {"version":1,"seed","duration_s","window_s","t_s":[...],"classes":[...],"devices":[...]}; see
// tools/sim/README.md.
std::string JsonOf(const Scenario& scenario, const ScenarioResult& result);
// Means per class and device, and the classes' rates over time as a plot.
std::string TableOf(const Scenario& scenario, const ScenarioResult& result);

}  // namespace weir::sim
