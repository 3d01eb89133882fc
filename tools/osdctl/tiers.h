// An OSD of several disks for people and programs: what each tier does, and how allocation divides
// them among the classes. Pure.
#pragma once

#include <string>

#include "common/wire/map.pb.h"
#include "common/wire/osd.pb.h"
#include "tools/osdctl/command.h"

namespace weir::osdctl {

// [{"tier": "ssd", "requests_per_s": .., "classes": [..]}, ..]; empty for an OSD of one disk.
Json TiersDocument(const wire::ClusterMap& map, const wire::OsdStatsReply& stats);
// [{"class": "gold", "hits": {"ssd": .9, "hdd": .1}, "bottleneck": "ssd", ..}, ..]
Json AllocationDocument(const wire::ClusterMap& map, const wire::OsdStatsReply& stats);
// Both as tables, of the classes that have a bottleneck.
std::string TierTables(const wire::ClusterMap& map, const wire::OsdStatsReply& stats);

}  // namespace weir::osdctl
