// One function per topic; each appends its experiments. all.cc joins them.
#pragma once

#include <vector>

#include "tools/sim/experiment.h"

namespace weir::sim {

void AddDelayArithmetic(std::vector<Experiment>* all);       // E1
void AddOneBrick(std::vector<Experiment>* all);              // E2
void AddTotalSharing(std::vector<Experiment>* all);          // E3, E4
void AddStriped(std::vector<Experiment>* all);               // E5
void AddCoordinators(std::vector<Experiment>* all);          // E6
void AddHybrid(std::vector<Experiment>* all);                // E7, E12
void AddOnOff(std::vector<Experiment>* all);                 // E8
void AddWaves(std::vector<Experiment>* all);                 // E9
void AddTheorems(std::vector<Experiment>* all);              // E10, E11
void AddAquaFigures(std::vector<Experiment>* all);           // E41 .. E44
void AddAquaClasses(std::vector<Experiment>* all);           // E45 .. E47
void AddPipeline(std::vector<Experiment>* all);              // E48, E49
void AddClusterPromise(std::vector<Experiment>* all);        // E53
void AddStonehengeArithmetic(std::vector<Experiment>* all);  // E31
void AddCentralManager(std::vector<Experiment>* all);        // E40
void AddSpareBandwidth(std::vector<Experiment>* all);        // E36, E37
void AddServiceEstimate(std::vector<Experiment>* all);       // E39
void AddStripedContracts(std::vector<Experiment>* all);      // E32, E38
void AddMeasuredAdmission(std::vector<Experiment>* all);     // E33, E34, E35
void AddSmallReader(std::vector<Experiment>* all);           // E56
void AddScale(std::vector<Experiment>* all);                 // E54
void AddMixedLoops(std::vector<Experiment>* all);            // E52
void AddBestEffort(std::vector<Experiment>* all);            // E57
void AddUnified(std::vector<Experiment>* all);               // E50
void AddLimits(std::vector<Experiment>* all);                // E55
void AddTieredAdaptivity(std::vector<Experiment>* all);      // E26
void AddTieredExamples(std::vector<Experiment>* all);        // E21 .. E23, E29
void AddTieredOsds(std::vector<Experiment>* all);            // E30b
void AddTieredProperties(std::vector<Experiment>* all);      // E30
void AddTieredSharing(std::vector<Experiment>* all);         // E24, E25, E27, E28
void AddVdClocks(std::vector<Experiment>* all);              // E13, E20
void AddVdCooperation(std::vector<Experiment>* all);         // E19
void AddVdLatency(std::vector<Experiment>* all);             // E18
void AddVdLocality(std::vector<Experiment>* all);            // E14 .. E16
void AddVdOpenmail(std::vector<Experiment>* all);            // E17
void AddVdUnified(std::vector<Experiment>* all);             // E58

}  // namespace weir::sim
