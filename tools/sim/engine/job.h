// Job: one request of a workload on its way through the simulated cluster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "osd/qos/scheduler.h"

namespace weir::sim {

class Load;

// What a workload asks for.
struct Io {
  size_t osd = 0;
  size_t coordinator = 0;
  uint64_t bytes = 0;
  uint64_t lba = 0;  // on that OSD, in bytes
  size_t tier = 0;   // which part of a tiered device
  osd::qos::OpKind op = osd::qos::OpKind::kWrite;
};

struct Job {
  osd::qos::Request request;  // its context points back here
  Load* load = nullptr;
  Io io;
  TimePoint sent;
  TimePoint left;           // its coordinator, where a limit may have held it (Cluster::HoldLimits)
  TimePoint arrived;        // its answer there, which a limit may hold
  Duration device_time{0};  // time the device worked on it; set by the device at the end
  // dmClock: what its class was served anywhere, and there by reservation, since the last request
  // to this OSD, this one included. Set only when that baseline runs.
  double delta = 1;
  double rho = 1;

  static Job* Of(osd::qos::Request* request) { return static_cast<Job*>(request->context); }
};

}  // namespace weir::sim
