// What a class is promised in bytes per second, for people. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace weir {

namespace wire {
class ClassInfo;
class ClusterMap;
}  // namespace wire

// What a virtual disk is like on an OSD of the map.
struct PeakOnOsd {
  uint32_t osd_id = 0;
  double share = 0;  // of its token rate, 0 to 1
  uint64_t bytes_per_s = 0;
};
// On each; none where the class is no virtual disk.
std::vector<PeakOnOsd> PeaksOf(const wire::ClusterMap& map, const wire::ClassInfo& info);

// On all OSDs together: by its reservation or by its type, the larger, as a request counts against
// both (common/qos/booking.h). A virtual disk of type throughput is promised that, which is a
// total; one of another type its peak on each OSD. Requests per second and latency bounds are not
// in it.
uint64_t PromisedTo(const wire::ClusterMap& map, const wire::ClassInfo& info);

}  // namespace weir
