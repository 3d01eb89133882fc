// Disks with mechanics (common/disk/model/hdd.h) as devices of the simulator.
#pragma once

#include "common/disk/model/hdd.h"
#include "tools/sim/engine/device.h"

namespace weir::sim {

using model::HddModel;
using model::HddModelNames;
using model::HddModelOf;

DeviceFactory Hdd(const HddModel& model);
// `disks` of one model behind one address space, striped in units of that many bytes.
DeviceFactory Raid0(const HddModel& model, int disks, uint64_t stripe_unit);

}  // namespace weir::sim
