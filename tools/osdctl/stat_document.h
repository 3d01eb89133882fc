// The counters of the OSDs as rows and as the JSON document of `osdctl stat`; pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/map.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

// What one OSD counted, with a row for every class of the map (zeros where it saw nothing), or for
// `only` alone. Counters of a class that the map no longer knows come as "class.<id>".
std::vector<wire::ClassStats> RowsOf(const wire::ClusterMap& map, const wire::OsdStatsReply& stats,
                                     const std::optional<uint32_t>& only);
std::string ClassName(const wire::ClusterMap& map, uint32_t id);

// One element of "osds".
Json StatDocument(const wire::ClusterMap& map, const wire::OsdStatsReply& stats,
                  const std::optional<uint32_t>& only);

// Per class over all OSDs, between two looks at the counters `seconds` apart.
struct ClassRate {
  std::string name;
  uint32_t id = 0;
  uint64_t promised = 0;  // PromisedTo
  double demand = 0;      // bytes per second that arrived
  double served = 0;      // bytes per second that were served
  double share = 0;       // of all that was served, 0 to 1
  uint64_t queued_ops = 0;
  uint64_t p50_us = 0;  // the worst OSD's, of the last 5 to 10 s
  uint64_t p99_us = 0;
  uint64_t violation_seconds = 0;  // since the counters' start
  uint64_t new_violations = 0;     // of them, between the looks
};
using StatsByOsd = std::map<uint32_t, wire::OsdStatsReply>;
// An OSD that is missing in one of the looks, or was reset between them, adds nothing to the rates.
std::vector<ClassRate> RatesBetween(const wire::ClusterMap& map, const StatsByOsd& before,
                                    const StatsByOsd& after, double seconds);

}  // namespace weir::osdctl
