// What the AQuA experiments share: the paper's three writers and its gate.
#pragma once

#include <vector>

#include "tools/sim/engine/cluster.h"
#include "tools/sim/experiment.h"

namespace weir::sim {

// The paper's global token rate, and its three writers' reservations, in MiB/s.
inline constexpr uint64_t kGlobalRate = 40;
inline constexpr uint64_t kPromised[] = {5, 15, 20};

ClassId WriterId(size_t i);
// Profile odis at 40 MiB/s without best-effort minimum; with a depth for sequential writers.
SchedulerConfig Odis(bool maximizer);
// `odis` as this run may have broken it.
SchedulerConfig OdisFor(const Run& run, bool maximizer);
// Writers 1 to 3 get classes, with or without promises.
void AddWriterClasses(const Run& run, Cluster* cluster, bool promises);
// A writer of 512 KiB blocks, four under way, sequential in its own part of the disk.
Load* StartWriter(Cluster* cluster, size_t i);
double SumMiBps(const std::vector<Load*>& loads, Duration from, Duration to);

}  // namespace weir::sim
