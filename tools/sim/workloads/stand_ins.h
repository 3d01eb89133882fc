// Stand-ins for the traces that the papers used and that cannot be passed on: arrivals, sizes,
// reads, locality and footprint as far as they are published (osd/qos/RULES.md, Models).
//
//   financial   OLTP of the SPC traces: 102 a second in bursts (b 0.75), 512 B to 4 KiB, 1 % up to
//               64 KiB, 23 % reads, Zipf 0.9 over 24 units, 5 % sequential, 15 GB
//   websearch   SPC: 337 a second (b 0.65), 8 to 32 KiB, 99.9 % reads, Zipf 0.7, 96 GB
//   tpc-c       closed loop of 16, 8 KiB, 64 % reads, Zipf 0.8, 9 GB
//   exchange    400 a second (b 0.8), 512 B to 8 MiB log-normal about 8 KiB, 60 % reads, 20 %
//               sequential
//   openmail    1000 a second (b 0.8), 512 B, 50 % reads, 90 % random, 3.1 GB
//   video       sequential reads of 64 KiB, closed loop
#pragma once

#include <string_view>

#include "tools/sim/engine/load.h"

namespace weir::sim {

struct StandIn {
  double speed = 1;                            // of arrivals: 1.25 is 1.25 times as many a second
  uint64_t start = 0;                          // where its footprint begins on the device
  double footprint_scale = 1;                  // 0.1: a tenth of the published footprint
  Duration length = std::chrono::seconds(60);  // arrivals end here
};

std::vector<std::string_view> StandInNames();
// Fills outstanding or gap, and shape. CHECKs that the name exists.
void PlayStandIn(std::string_view name, const StandIn& how, Prng* prng, LoadOptions* options);

}  // namespace weir::sim
