// What requests look like (LoadOptions::shape): size, address, direction. Each keeps its own state,
// one per load.
#pragma once

#include <functional>

#include "tools/sim/engine/job.h"

namespace weir {
class Prng;
}

namespace weir::sim {

using Shape = std::function<void(Prng& prng, uint64_t n, Io* io)>;

struct ShapeOptions {
  uint64_t least_bytes = 4096;  // sizes uniform in [least, most]
  uint64_t most_bytes = 4096;
  double reads = 0;                       // part of requests that read
  double locality = 0;                    // chance that the next request follows the last one
  uint64_t start = 0, span = 1ull << 30;  // addresses, in bytes
  double zipf = 0;                        // 0: anywhere alike; else exponent over `units` parts
  int units = 24;
  uint64_t align = 512;
};

// Locality 1 is a sequential stream, 0 random access.
Shape MakeShape(const ShapeOptions& options);

// Sizes log-normal about `median_bytes`, cut to [least, most] of the options.
Shape MakeLogNormal(const ShapeOptions& options, double median_bytes, double sigma);

}  // namespace weir::sim
