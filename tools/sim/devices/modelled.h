// ModelDevice: a DiskModel under a simulated OSD.
#pragma once

#include <functional>
#include <memory>

#include "common/disk/model/disk_model.h"
#include "tools/sim/engine/device.h"

namespace weir::sim {

// The device, with the model that `make` makes of its queue and its chance.
using ModelMaker = std::function<std::unique_ptr<model::DiskModel>(EventQueue*, Prng)>;
DeviceFactory Modelled(ModelMaker make);

}  // namespace weir::sim
