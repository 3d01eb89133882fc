// What weir-sim prints: tables for people, one JSON document for scripts.
#pragma once

#include <string>
#include <vector>

#include "tools/sim/experiment.h"

namespace weir::sim {

struct Outcome {
  const Experiment* experiment = nullptr;
  Run run{0};
};

// {"version":1,"experiments":[{"id","title","source","checks":[...],"pass"}],"pass"}; a bound or an
// expectation that does not exist is null.
std::string JsonOf(const std::vector<Outcome>& outcomes);
std::string TableOf(const Outcome& outcome);

}  // namespace weir::sim
