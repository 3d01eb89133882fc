// Uniform: one server; each request takes `mean_s` give or take up to `spread` of it, evenly
// spread, whatever its size or place.
#pragma once

#include "tools/sim/engine/device.h"

namespace weir::sim {

DeviceFactory Uniform(double mean_s, double spread);

}  // namespace weir::sim
