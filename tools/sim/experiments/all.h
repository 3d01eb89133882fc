// One function per topic; each appends its experiments. all.cc joins them.
#pragma once

#include <vector>

#include "tools/sim/experiment.h"

namespace weir::sim {

void AddDelayArithmetic(std::vector<Experiment>* all);  // E1
void AddOneBrick(std::vector<Experiment>* all);         // E2
void AddTotalSharing(std::vector<Experiment>* all);     // E3 .. E6

}  // namespace weir::sim
