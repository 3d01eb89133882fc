// What daemons count, as metrics. The replies are those that osdctl reads, so that both always say
// the same. Names and meanings: tools/monitoring/README.md.
//
// Pure, but for AddProcessMetrics, which reads /proc/self.
#pragma once

#include <string>

#include "common/monitor/metric_page.h"

namespace weir::wire {
class ClassLoadReply;
class OsdStatsReply;
class StatusReply;
}  // namespace weir::wire

namespace weir::monitor {

// Labels `osd` and `class`. Classes that are gone are counted together, as class "removed".
void AddOsdMetrics(const wire::OsdStatsReply& stats, MetricPage* page);
// Label `class` (operations, contracts) or `osd` (as the MDS sees it).
void AddMdsMetrics(const wire::StatusReply& status, const wire::ClassLoadReply& load,
                   MetricPage* page);
// Processor time, memory, files, threads; and which program this is.
void AddProcessMetrics(const std::string& program, MetricPage* page);

}  // namespace weir::monitor
