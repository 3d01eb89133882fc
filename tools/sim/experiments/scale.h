// The run that shows how far the simulator and the engine go; shared by E54 and its benchmark.
#pragma once

#include <cstdint>

namespace weir::sim {

struct ScaleOptions {
  uint32_t osds = 1000;
  uint32_t clients = 10'000;
  uint32_t classes = 1000;
  uint32_t osds_of_class = 8;  // neighbours on a ring; each OSD serves as many classes
  double seconds = 10;
  uint64_t seed = 1;
  bool send_delays = true;
};

struct ScaleResult {
  double worst_error = 0;  // largest |rate / weight over its mean - 1| of a class
  double mean_error = 0;
  uint64_t requests = 0;
  uint64_t events = 0;
  uint64_t marks = 0;  // (class, OSD) pairs that the coordinators remember together
  uint64_t largest_coordinator = 0;
};

// Classes of weight 1 and 2 in turn, ten clients each, every client spreading over the class's OSDs
// with its own coordinator; all backlogged.
ScaleResult RunScale(const ScaleOptions& options);

}  // namespace weir::sim
