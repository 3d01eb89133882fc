#include "tools/sim/experiments/all.h"

#include <algorithm>
#include <cstdlib>

namespace weir::sim {
namespace {

std::vector<Experiment> Collect() {
  std::vector<Experiment> all;
  AddDelayArithmetic(&all);
  AddOneBrick(&all);
  AddTotalSharing(&all);
  AddTieredAdaptivity(&all);
  AddTieredExamples(&all);
  AddTieredOsds(&all);
  AddTieredProperties(&all);
  AddTieredSharing(&all);
  AddStriped(&all);
  AddCoordinators(&all);
  AddHybrid(&all);
  AddOnOff(&all);
  AddWaves(&all);
  AddTheorems(&all);
  AddVdClocks(&all);
  AddVdCooperation(&all);
  AddVdLatency(&all);
  AddVdLocality(&all);
  AddVdOpenmail(&all);
  AddVdUnified(&all);
  AddAquaFigures(&all);
  AddAquaClasses(&all);
  AddPipeline(&all);
  AddClusterPromise(&all);
  AddStonehengeArithmetic(&all);
  AddCentralManager(&all);
  AddSpareBandwidth(&all);
  AddServiceEstimate(&all);
  AddStripedContracts(&all);
  AddMeasuredAdmission(&all);
  AddSmallReader(&all);
  AddScale(&all);
  AddMixedLoops(&all);
  AddUnified(&all);
  AddBestEffort(&all);
  AddLimits(&all);
  // By number, then by letter: E30, E30b, E31.
  const auto key = [](const Experiment& e) {
    return std::pair(std::strtol(e.id.c_str() + 1, nullptr, 10), e.id);
  };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return all;
}

}  // namespace

const std::vector<Experiment>& AllExperiments() {
  static const std::vector<Experiment> all = Collect();
  return all;
}

}  // namespace weir::sim
