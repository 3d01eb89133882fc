// Limits over several OSDs: which of a map's are divided among mounts, and what mounts and the MDS
// say about it to each other (common/qos/limit_share.h, limit_divider.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/placement/cluster_map.h"
#include "common/qos/limit_share.h"

namespace weir {

namespace wire {
class DivideLimitsReply;
class LimitReport;
}  // namespace wire

// What its OSDs cannot hold each for itself.
[[nodiscard]] bool IsLimitedOverOsds(const ClusterMap& map, const ClassSpec& spec);
// In bytes per second, of the classes for which that is so.
[[nodiscard]] std::map<ClassId, uint64_t> DividedLimits(const ClusterMap& map);

void ToWire(const LimitReport& report, wire::LimitReport* message);
[[nodiscard]] LimitReport FromWire(const wire::LimitReport& message);
[[nodiscard]] wire::DivideLimitsReply ToWire(const std::vector<LimitPart>& parts);
[[nodiscard]] std::vector<LimitPart> FromWire(const wire::DivideLimitsReply& message);

}  // namespace weir
