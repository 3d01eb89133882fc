// A virtual disk: what a class is promised of a device by its time (Yan and Jiang, "Spatial-
// Locality-Aware Virtual Storage Devices", §3.1; RULES.md §5). A contract names a share of the
// device's time, as the peak (fully sequential) bandwidth that a disk of its own would have, and
// what its owner cares about:
//
//   rent-a-disk   nothing else: it behaves like a private disk of that peak
//   latency       requests done within `latency`, whenever that private disk would manage it
//   throughput    an average rate over the life of the flow, up to what that private disk gives
//
// A class without a contract (best-effort) gets what others leave. A peak may be given in bytes per
// second as well: of an OSD that was measured to do G0 (its token rate) that is the share peak /
// G0. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/result.h"
#include "common/base/time.h"

namespace weir {

enum class ClassType : uint8_t { kBestEffort, kRentADisk, kLatency, kThroughput };

struct VirtualDisk {
  ClassType type = ClassType::kBestEffort;
  double peak = 0;                      // f: share of the device's peak bandwidth, in (0, 1]
  Duration latency{0};                  // b, type latency: from arrival to completion
  uint64_t throughput_bytes_per_s = 0;  // c, type throughput
  double tolerance = 0.05;              // of c, that may be lent to latency disks in need, [0, 1)
  uint64_t peak_bytes_per_s = 0;        // instead of f; 0: it is given as a share

  friend bool operator==(const VirtualDisk&, const VirtualDisk&) = default;
};

std::string_view ToText(ClassType type);
// kInvalid lists what there is.
Result<ClassType> ParseClassType(std::string_view text);

// Whether the contract says what its type needs; kInvalid names what is missing and the option that
// sets it.
Status CheckVirtualDisk(const VirtualDisk& disk);

// The share of an OSD of that token rate; 0 while the rate is not known.
double ShareOn(const VirtualDisk& disk, uint64_t token_rate);

}  // namespace weir
