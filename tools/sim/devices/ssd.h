// A flash disk: pages over channels, a write buffer before them.
//
//   a request is cut into pages; page i goes to channel i mod n and waits its turn there
//   reads cost read_s a page, writes program_s, and `overhead_s` for each request
//   a write is done when the buffer has taken it (bus speed); pages are programmed behind it, and
//   when the buffer is full a write waits for room
#pragma once

#include "tools/sim/engine/device.h"

namespace weir::sim {

struct SsdModel {
  int channels = 8;
  uint64_t page = 4096;
  double read_s = 60e-6;
  double program_s = 200e-6;
  double overhead_s = 10e-6;
  double bus_bytes_per_s = 2e9;
  uint64_t buffer = 4ull << 20;
};

DeviceFactory Ssd(const SsdModel& model);

// Service times recorded elsewhere, played round and round whatever is asked: one server.
DeviceFactory Recorded(std::vector<double> seconds);

}  // namespace weir::sim
