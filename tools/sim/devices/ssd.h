// Flash disks (common/disk/model/ssd.h) as devices of the simulator.
#pragma once

#include <vector>

#include "common/disk/model/ssd.h"
#include "tools/sim/engine/device.h"

namespace weir::sim {

using model::SsdModel;

DeviceFactory Ssd(const SsdModel& model);

// Service times recorded elsewhere, played round and round whatever is asked: one server.
DeviceFactory Recorded(std::vector<double> seconds);

}  // namespace weir::sim
