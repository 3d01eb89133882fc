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

// {"version":1,"seed","experiments":[{"id","title","source","about","checks":[...],"figures":[
// {"title","x_label","y_label","curves":[{"name","paper","x","y"}]}],"pass"}],"pass"}; a bound, an
// expectation or a point that does not exist is null.
std::string JsonOf(const std::vector<Outcome>& outcomes);
std::string TableOf(const Outcome& outcome);

}  // namespace weir::sim
