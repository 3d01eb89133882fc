// Clusters of schedulers in virtual time for the tests of the scheduler: the simulator's own engine
// (tools/sim/engine) under the names that these tests use. The same calls give the same numbers.
//
//   Cluster cluster(1, config, 60 * kMiB);        // one OSD whose device moves 60 MiB/s
//   cluster.SetClass(Spec(kGold));
//   Load* gold = cluster.Start({.class_id = kGold, .outstanding = 4, .bytes = 512 * kKiB});
//   cluster.RunTo(10s);
//   gold->MiBps(2s, 10s);                          // MiB/s completed between these moments
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/base/prng.h"
#include "tools/sim/engine/cluster.h"

namespace weir::osd::qos::testing {

using sim::Cluster;
using sim::kKiB;
using sim::kMiB;
using sim::Load;
using sim::Reserved;
using sim::Spec;

}  // namespace weir::osd::qos::testing
