// What is wrong with a cluster, a sentence each: `osdctl status` and the web page say the same.
// `osdctl status` adds notes.
//
// Pure. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::wire {
class OsdStatsReply;
class StatusReply;
}  // namespace weir::wire

namespace weir::monitor {

// `osds` has the counters of those that answered, `silence` why another one did not, if that is
// known; both by number.
std::vector<std::string> TroublesOf(const wire::StatusReply& status,
                                    const std::map<uint32_t, wire::OsdStatsReply>& osds,
                                    const std::map<uint32_t, std::string>& silence);

// What is no trouble, but worth knowing: OSDs that are nearly full (placement/near_full.h), and
// classes whose mounts miss each other (qos/affinity.h), by the flows of the last seconds, where
// `osds` have them.
std::vector<std::string> NotesOf(const wire::StatusReply& status,
                                 const std::map<uint32_t, wire::OsdStatsReply>& osds);

}  // namespace weir::monitor
