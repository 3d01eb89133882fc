// What OSD_STATS says of an OSD with several tiers.
#pragma once

namespace weir::wire {
class OsdStatsReply;
class OsdStatsRequest;
}  // namespace weir::wire

namespace weir::osd {

class TierSet;
struct DispatcherStats;

// `reply` holds the first tier's numbers, of `first`, as for an OSD of one disk. They become the
// sums over the tiers (of latencies the longest of the tiers', of a rate the first tier's stays),
// and each tier gets a record of its own, with what allocation makes of the classes.
void AddTierStats(TierSet& tiers, const DispatcherStats& first,
                  const wire::OsdStatsRequest& request, wire::OsdStatsReply* reply);

}  // namespace weir::osd
