// What is wrong with a cluster, a sentence each: `osdctl status` and the web page say the same.
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

}  // namespace weir::monitor
